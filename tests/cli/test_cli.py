"""The command `mockraft` itself, and exit codes: one meaning for each number in all commands, help and documents."""

import ast
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from mockraft import cli
from mockraft.cli.commands import LISTED, MOCKRAFT
from mockraft.cli.exit_codes import ExitCode
from mockraft.wire import codec_path
from mockraft.wire.connection import SOFTWARE_VERSION

from ..rows import each_row
from .cli import DEADLINE_S, invoke

PROCESS = [sys.executable, "-m", "mockraft"]


def test_version_shows_the_package_and_kafka_release() -> None:
    result = invoke("--version")
    assert result.exit_code == 0
    about = f"speaking as Kafka {SOFTWARE_VERSION}, codec {codec_path.path}"
    assert result.stdout == f"mockraft {version('mockraft')}, {about}\n"


def test_without_a_command_help_lists_each_command_once_under_a_heading() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert all(result.output.count(f"\n  {name} ") == 1 for name in LISTED)
    assert "\nCompare with Kafka:\n" in result.output


def test_every_command_of_the_help_is_there() -> None:
    assert [MOCKRAFT.subcommands[name].name for name in LISTED] == list(LISTED)


def test_a_misspelled_command_is_compared_with_all() -> None:
    result = invoke("brokrs")
    assert result.exit_code == 2
    assert result.stderr == "mockraft: there is no command 'brokrs'; did you mean brokers or broker or broker-id?\n"


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from mockraft.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    late = ("mockraft.server", "mockraft.wire.messages", "asyncio", "argparse", "pydantic", "rich")
    assert [name for name in loaded if name.startswith(late)] == []


@each_row("command", ["--version", "differences", "serve --port 0"])
def test_output_that_cannot_be_written_is_reported_once(command: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*PROCESS, *command.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.count("mockraft: cannot write the output: No space left on device\n") == 1
    assert "Traceback" not in ended.stderr


@each_row("command", ["--version", "differences"])
def test_a_closed_pipe_ends_a_command_silently(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*PROCESS, command], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


@each_row("command", ["serve --port 0 --until-stdin-ends", "run --plain --port 0 --for 0.1"])
def test_a_server_runs_with_closed_standard_streams(command: str) -> None:
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    assert subprocess.run([*closed, *PROCESS, *command.split()], check=False, timeout=DEADLINE_S).returncode == 0


@each_row(
    ("words", "found"),
    [
        ("spark re", ["replay", "report"]),
        ("serve --release 4", ["4.0", "4.1", "4.2", "4.3", "4.4"]),
        ("serve --ssl-client-auth=req", ["--ssl-client-auth=requested", "--ssl-client-auth=required"]),
        ("serve --virtual", ["--virtual-clock"]),
        ("conformance --against kafka-3.8", ["kafka-3.8.1"]),
        ("faults add slow", ["slow_close"]),
        ("serve --data-dir co", []),
    ],
)
def test_words_are_completed(words: str, found: list[str]) -> None:
    done = invoke("completion", "words", "--", *words.split())
    assert (done.stdout.split(), done.exit_code) == (found, 0 if found else 1)


@each_row("shell", ["bash"])
def test_a_shell_completes_with_the_script(shell: str) -> None:
    script = invoke("completion", shell).stdout
    words = "COMP_WORDS=(mockraft spark re); COMP_CWORD=2; _mockraft; echo ${COMPREPLY[@]}"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([shell, "-c", script + words], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "replay report\n"


ENTRY = Path(str(cli.__file__))
SOURCES = sorted(path for path in ENTRY.parent.rglob("*.py") if path != ENTRY)
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
ENDS = ("Exit", "SystemExit", "exit", "end", "_fail")
ALWAYS_LISTED = {"DONE", "USAGE"}


def test_documentation_has_the_meaning_of_every_code() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+?) \|", PAGE.read_text(), re.MULTILINE)
    assert rows == [(f"{code:d}", code.meaning) for code in ExitCode]


@each_row("path", SOURCES)
def test_command_ends_with_a_code_of_the_table_that_its_help_lists(path: Path) -> None:
    ended: set[str] = set()
    listed: set[str] = set()
    has_help = False
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        codes = {ast.unparse(each).removeprefix("ExitCode.") for each in call.args if is_code(each)}
        if name == "exit_codes":
            has_help = True
            listed |= codes | ALWAYS_LISTED | {"FAILED" for each in call.keywords if each.arg == "failed"}
        elif name == "end_without":
            ended.add("MISSING")
        elif name in ENDS:
            ended |= codes
            assert [each for each in call.args if ast.unparse(each).isdigit()] == []
    assert not has_help or ended <= listed
    assert path.name == "exit_codes.py" or "Exit codes:" not in path.read_text()


def is_code(node: ast.expr) -> bool:
    return ast.unparse(node).startswith("ExitCode.")
