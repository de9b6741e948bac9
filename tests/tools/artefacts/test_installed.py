"""Each package, installed into an empty environment, does what the README begins with."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.artefacts.packages import pythons_at_hand
from tools.artefacts.version import version

from ...budgets import soak
from .conftest import ROOT, run

pytestmark = pytest.mark.artefacts

CONTROLLER = """
from mockraft import BrokerState, Controller

with Controller.sync(brokers=1) as controller:
    print(controller.brokers[1].state is BrokerState.RUNNING)
"""
THIS_PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
CAPTURE = str(ROOT / "tests/captures/controller-4.3.1.pcap")
PROGRAMS = {
    "admin": """
from mockraft import Controller
with Controller.sync(admin_port=0) as controller:
    print(controller.admin_url)
""",
    "captures": f"""
from mockraft.spark_replay import read_frames
print(next(read_frames({CAPTURE!r}, [19093])).num_rows)
""",
    "conformance": """
import subprocess
from mockraft import Controller
with Controller.sync() as controller:
    run = ["-m", "mockraft", "conformance", "--bootstrap", controller.bootstrap, "--area", "features"]
    subprocess.run([sys.executable, *run, "--html", "report.html"], check=True)
print(open("report.html").read())
""",
    "containers": """
from mockraft.testcontainers import MockraftContainer
print(MockraftContainer)
""",
    "keystores": """
from mockraft.wire import pkcs12
print(pkcs12)
""",
    "kio": """
from mockraft.wire.kio_entities import to_kio
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
print(to_kio(BrokerHeartbeatRequest(broker_id=1), 0))
""",
    "mcp": """
import asyncio
from mcp import Client, StdioServerParameters
async def tools():
    async with Client(StdioServerParameters(command=sys.executable, args=["-m", "mockraft", "mcp"])) as client:
        return await client.list_tools()
print(asyncio.run(tools()))
""",
    "oauth": """
from mockraft import Controller
sasl = {"security_protocol": "SASL_PLAINTEXT", "sasl_enabled_mechanisms": "OAUTHBEARER"}
open("jwks.json", "w").write('{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "%s"}]}' % ("A" * 43))
with Controller.sync(**sasl, sasl_oauthbearer_jwks_endpoint_url="jwks.json") as controller:
    print(controller.bootstrap)
""",
    "report": f"""
import subprocess
run = [sys.executable, "-m", "mockraft", "spark", "report", "--captures", {CAPTURE!r}, "--ports", "19093"]
subprocess.run([*run, "--html", "run.html"], check=True, env={{"PATH": ""}})
print(open("run.html").read())
""",
    "spark": f"""
from mockraft.spark_replay.spark import tables
from mockraft.spark_replay.spark.session import start_session
print(tables.frames(start_session("local[1]"), [{CAPTURE!r}], ports=[19093]).count())
""",
    "speed": """
from mockraft.wire import codec_path
assert codec_path.path == "speed"
print(codec_path.path)
""",
}
"""For each extra a program that needs it and prints something."""


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


@pytest.mark.parametrize("ending", ["-py3-none-any.whl", pytest.param(".tar.gz", marks=soak)])
def test_package_works_in_an_empty_environment(
    ending: str, packages: Path, environment: Callable[..., Path], tmp_path: Path
) -> None:
    programs = environment(only(packages, f"mockraft-*{ending}"))
    assert run(programs / "mockraft", "--version", cwd=tmp_path).startswith(f"mockraft {version()}, ")
    assert run(programs / "python", "-c", CONTROLLER, cwd=tmp_path) == "True\n"

    environment(only(packages, f"pytest_mockraft-*{ending}"))
    (tmp_path / "test_readme.py").write_text(
        (ROOT / "pytest_mockraft/README.md").read_text().partition("```python\n")[2].partition("```")[0]
    )
    assert " 1 passed in " in run(programs / "python", "-m", "pytest", "test_readme.py", cwd=tmp_path)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["mockraft.pytest_plugin"]')
    assert " 1 passed in " in run(programs / "python", "-m", "pytest", "test_readme.py", cwd=tmp_path)
    run(sys.executable, "-m", "uv", "pip", "check", "--python", programs / "python", cwd=tmp_path)


@pytest.mark.parametrize("ending", [f"-{THIS_PYTHON}-manylinux*.whl", pytest.param(".tar.gz", marks=soak)])
def test_accelerator_works_in_an_empty_environment(
    ending: str, packages: Path, environment: Callable[..., Path], tmp_path: Path
) -> None:
    programs = environment(only(packages, "mockraft-*.whl"), only(packages, f"mockraft_speed-*{ending}"))
    assert run(programs / "python", "-c", PROGRAMS["speed"], cwd=tmp_path) == "speed\n"
    assert run(programs / "mockraft", "--version", cwd=tmp_path).endswith(", codec speed\n")
    assert run(programs / "mockraft", "--version", cwd=tmp_path, MOCKRAFT_CODEC="pure").endswith(", codec pure\n")


def test_accelerator_has_a_wheel_for_each_python_at_hand(packages: Path, tmp_path: Path) -> None:
    pythons = pythons_at_hand(ROOT / "speed")
    assert len([*packages.glob("mockraft_speed-*-manylinux*.whl")]) == len(pythons)
    for number, python in pythons.items():
        tag = f"cp{number.replace('.', '')}"
        with zipfile.ZipFile(only(packages, f"mockraft_speed-*-{tag}-{tag}-manylinux*.whl")) as wheel:
            wheel.extractall(tmp_path / number)
        imported = "import mockraft_speed._codec; print(mockraft_speed.__version__)"
        assert run(python, "-c", imported, cwd=tmp_path / number) == f"{version()}\n"


@soak
def test_program_of_an_extra_fails_without_it(packages: Path, environment: Callable[..., Path], tmp_path: Path) -> None:
    python = environment(only(packages, "mockraft-*.whl")) / "python"
    codes = {
        extra: subprocess.run([python, "-c", f"import sys{program}"], cwd=tmp_path, check=False).returncode
        for extra, program in PROGRAMS.items()
    }
    assert codes == dict.fromkeys(PROGRAMS, 1)


@soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("extra", PROGRAMS)
def test_extra_has_all_that_its_programs_need(
    extra: str, packages: Path, environment: Callable[..., Path], tmp_path: Path
) -> None:
    programs = environment(f"mockraft[{extra}] @ {only(packages, 'mockraft-*.whl').as_uri()}")
    assert run(programs / "python", "-c", f"import sys{PROGRAMS[extra]}", cwd=tmp_path)
