"""The command `mockraft` itself."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from mockraft.cli import application
from mockraft.cli.command_groups import COMMANDS
from mockraft.wire import codec_path
from mockraft.wire.connection import SOFTWARE_VERSION
from typer import Context
from typer.main import get_group

from .cli import DEADLINE_S, invoke

MOCKRAFT = [sys.executable, "-m", "mockraft"]


def test_version_shows_the_package_and_kafka_release() -> None:
    result = invoke("--version")
    assert result.exit_code == 0
    about = f"speaking as Kafka {SOFTWARE_VERSION}, codec {codec_path.path}"
    assert result.stdout == f"mockraft {version('mockraft')}, {about}\n"


def test_without_a_command_help_lists_each_command_once_under_a_heading() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert all(result.output.count(f"\n  {name} ") == 1 for name in COMMANDS)
    assert "\nCompare with Kafka:\n" in result.output


def test_every_command_of_the_help_is_there() -> None:
    group = get_group(application())
    found = [group.get_command(Context(group), name) for name in COMMANDS]
    assert [command and command.name for command in found] == list(COMMANDS)
    assert set(group.commands) == set(COMMANDS)
    assert group.get_command(Context(group), "nothing") is None


def test_a_misspelled_command_is_compared_with_all() -> None:
    result = invoke("brokrs")
    assert result.exit_code == 2
    assert "No such command 'brokrs'. Did you mean 'brokers'" in result.output


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from mockraft.cli import application; from typer.testing import CliRunner;"
        "CliRunner().invoke(application(), ['--help']);"
        "print(*[name for name in sys.modules if name.startswith(('mockraft.server', 'mockraft.wire', 'asyncio.'))])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.startswith("mockraft")] == []


@pytest.mark.parametrize("command", ["--version", "differences", "serve --port 0"])
def test_output_that_cannot_be_written_is_reported_once(command: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*MOCKRAFT, *command.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.count("mockraft: cannot write the output: No space left on device\n") == 1
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["--version", "differences"])
def test_a_closed_pipe_ends_a_command_silently(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*MOCKRAFT, command], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


@pytest.mark.parametrize("command", ["serve --port 0 --until-stdin-ends", "run --plain --port 0 --for 0.1"])
def test_a_server_runs_with_closed_standard_streams(command: str) -> None:
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    assert subprocess.run([*closed, *MOCKRAFT, *command.split()], check=False, timeout=DEADLINE_S).returncode == 0


@pytest.mark.parametrize(
    ("shell", "environment"),
    [
        ("bash", {"COMP_WORDS": "mockraft spark re", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "mockraft spark re"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "mockraft spark re", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_shells_complete_commands(shell: str, environment: dict[str, str]) -> None:
    words = os.environ | environment | {"_MOCKRAFT_COMPLETE": f"complete_{shell}"}
    done = subprocess.run([sys.executable, "-m", "mockraft"], env=words, capture_output=True, text=True, check=False)
    assert ("replay" in done.stdout, "report" in done.stdout, "roundtrip" in done.stdout) == (True, True, False)
