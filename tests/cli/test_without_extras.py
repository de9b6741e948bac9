"""Without the packages of extras: recording works, and commands that need an extra name it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.cli.exit_codes import ExitCode
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ..rows import each_row
from ..topics import ask
from .cli import DEADLINE_S, started

CAPTURE = str(Path(__file__).parents[1] / "captures" / "brokers-4.3.1.pcap")
MISSING = ["numpy", "pyarrow", "pandas", "fastapi", "uvicorn", "yaml", "jinja2", "matplotlib"]
MISSING += ["pyspark", "mcp"]
LIGHT = f"import sys; sys.modules.update(dict.fromkeys({MISSING})); from mockraft.cli import main; main()"


@each_row(
    ("command", "extra"),
    [
        (f"replay --capture {CAPTURE} --bootstrap 127.0.0.1:1", "captures"),
        ("serve --port 0 --admin-port 0", "admin"),
        ("serve --port 0 --stubs stubs.yaml", "admin"),
        ("stubs load stubs.yaml", "admin"),
        ("mcp", "mcp"),
        (f"spark decode --captures {CAPTURE} --out tables", "spark"),
        (f"spark report --captures {CAPTURE} --html run.html", "report"),
    ],
)
def test_command_without_its_extra_names_it_in_one_line(tmp_path: Path, command: str, extra: str) -> None:
    (tmp_path / "stubs.yaml").write_text("stubs: []\n")
    ended = without_extras(*command.split(), folder=tmp_path)
    assert ended.returncode == ExitCode.MISSING, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"mockraft {command.split()[0]}")
    assert f"pip install 'mockraft[{extra}]'" in line


def test_report_of_conformance_without_its_extra_names_it(tmp_path: Path) -> None:
    with Controller.sync() as controller:
        options = (
            "--bootstrap",
            controller.bootstrap,
            "--area",
            "registration",
            "--only",
            "names a directory twice",
            "--html",
            "run.html",
        )
        ended = without_extras("conformance", *options, folder=tmp_path)
    assert (ended.returncode, "pip install 'mockraft[conformance]'" in ended.stderr) == (ExitCode.MISSING, True)


def without_extras(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIGHT, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S)


@pytest.mark.parametrize("command", ["capture", "record"])
async def test_proxy_records_without_the_extra(tmp_path: Path, command: str) -> None:
    path = tmp_path / "out"
    async with Controller() as controller:
        options = ["--listen", "127.0.0.1:0", "--upstream", controller.bootstrap, "--out", str(path)]
        ready = r"mockraft \w+ ready bootstrap=(\S+) .*\n"
        with started(command, *options, ready=ready, command=("-c", LIGHT)) as (process, found):
            assert (await ask(found[1], DescribeClusterRequest(endpoint_type=2))).error_code == 0
            process.terminate()
            _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, errors
    if command == "capture":
        assert path.read_bytes().startswith(b"\x0a\x0d\x0d\x0a")
        lines = (tmp_path / "out.index.jsonl").read_text().splitlines()
        assert [json.loads(line)["api"] for line in lines] == ["ApiVersions", "DescribeCluster"]
    else:
        stubs = json.loads(path.read_text())["stubs"]
        assert [each["match"]["api"] for each in stubs] == ["ApiVersions", "DescribeCluster"]
