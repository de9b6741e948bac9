"""Without numpy, pyarrow and construct: recording works, and commands that read a capture name the missing extra."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ..topics import ask
from .cli import DEADLINE_S, started

CAPTURE = str(Path(__file__).parents[1] / "captures" / "brokers-4.3.1.pcap")
LIGHT = (
    "import sys; sys.modules.update(dict.fromkeys(['numpy', 'pyarrow', 'construct', 'pandas'])); "
    "from mockraft.cli import main; main()"
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", "--capture", CAPTURE, "--bootstrap", "127.0.0.1:1"],
        ["record", "--capture", CAPTURE, "--out", "-"],
        ["serve-capture", "--capture", CAPTURE, "--listen", "127.0.0.1:0"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_capture_command_without_its_extra_names_it_in_one_line(arguments: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIGHT, *arguments], capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"mockraft {arguments[0]}: reading a capture needs ")
    assert line.endswith("which is not installed: pip install 'mockraft[captures]'")


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
