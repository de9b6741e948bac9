import functools
import subprocess
import sys
from typing import Any

import pytest
import typer
from mockraft import serve_arguments
from mockraft.serve import serve

PLAIN = [
    [],
    ["--port", "0", "--host=0.0.0.0", "--node-id", "7"],
    ["--data-dir", "some/where", "--metadata-log-fsync", "--authorizer", "--super-users=User:admin;User:broker"],
    ["--profile", "kip-858", "--profile=kip-1066", "--api-versions", "BrokerHeartbeat=0-1", "--api-versions=52=off"],
    ["--schemas", "a", "--schemas", "b", "--stubs", "stubs.yaml", "--admin-port", "0", "--virtual-clock", "--log-json"],
]
NOT_PLAIN = [
    ["--help"],
    ["--port", "x"],
    ["--port", "70000"],
    ["--port", "-1"],
    ["--port"],
    ["--port", "1", "--port", "2"],
    ["--seed=-5"],
    ["--authorizer=yes"],
    ["--controllers", "0"],
    ["--no-such-option", "1"],
    ["a-word"],
    ["--"],
]


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_plain_arguments_are_read_as_typer_reads_them(arguments: list[str]) -> None:
    read = serve_arguments.read(serve, arguments)

    assert read is not None
    assert read == by_typer(arguments)
    assert {name: type(value) for name, value in read.items()} == {
        name: type(value) for name, value in by_typer(arguments).items()
    }


@pytest.mark.parametrize("arguments", NOT_PLAIN, ids=" ".join)
def test_what_is_not_plain_is_left_to_typer(arguments: list[str]) -> None:
    assert serve_arguments.read(serve, arguments) is None


def test_a_controller_starts_without_what_only_stubs_faults_and_typer_need() -> None:
    code = """
import sys
from mockraft import cli, serve, serve_stubs
from mockraft.server import double, running
assert serve_arguments.read(serve.serve, ["--port", "0"])
assert serve_stubs.stub_file(None) is None
print(*sys.modules)
"""
    command = [sys.executable, "-c", f"from mockraft import serve_arguments{code}"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    late = ("mockraft.server.scripted", "mockraft.server.stubs.stub", "mockraft.server.state", "pydantic")
    assert [name for name in loaded if name.startswith(late) or ".stubs.faults." in name] == [
        "mockraft.server.stubs.faults.registry"
    ]


def by_typer(arguments: list[str]) -> dict[str, Any]:
    """What the function gets when Typer calls it."""
    given: list[dict[str, Any]] = []

    @functools.wraps(serve)
    def take(**options: Any) -> None:
        given.append(options)

    app = typer.Typer()
    app.command()(take)
    app(arguments, standalone_mode=False)
    return given[0]
