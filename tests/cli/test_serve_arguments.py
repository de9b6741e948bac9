import os
import subprocess
import sys
from typing import Any

import pytest
import typer
from mockraft.cli.serve.arguments import read
from mockraft.cli.serve.help import _typer_function
from mockraft.cli.serve.options import defaults, misspelled_variables

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
    plain = read(arguments)

    assert plain is not None
    assert plain == by_typer(arguments)
    assert {name: type(value) for name, value in plain.items()} == {
        name: type(value) for name, value in by_typer(arguments).items()
    }


@pytest.mark.parametrize("arguments", NOT_PLAIN, ids=" ".join)
def test_other_arguments_are_left_to_typer(arguments: list[str]) -> None:
    assert read(arguments) is None


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("PORT", "0"),
        ("PORT", ""),
        ("PORT", "tcp://10.0.0.1:9093"),
        ("HOST", "0.0.0.0"),
        ("SEED", "-5"),
        ("AUTHORIZER", "true"),
        ("AUTHORIZER", "no"),
        ("DATA_DIR", "some where"),
        ("API_VERSIONS", "BrokerHeartbeat=0-1 52=off"),
        ("SCHEMAS", "a:b"),
    ],
)
def test_a_variable_is_read_as_typer_reads_it(variable: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"MOCKRAFT_{variable}", text)

    options = by_typer([])
    assert read([]) in (options, None)
    is_given = text and not text.startswith("tcp:")
    assert options.pop("given") == ({variable.lower()} if is_given else set())
    assert (options != defaults()) == bool(is_given and text != "no")


def test_an_option_precedes_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCKRAFT_PORT", "1")
    monkeypatch.setenv("MOCKRAFT_API_VERSIONS", "52=off")

    arguments = ["--port", "2", "--api-versions", "Fetch=4-16"]
    plain = read(arguments)
    assert plain == by_typer(arguments)
    assert (plain or {})["port"] == 2


@pytest.mark.parametrize(
    ("variable", "text", "error"),
    [
        ("PORT", "x", "'--port' (env var: 'MOCKRAFT_PORT'): "),
        ("AUTHORIZER", "maybe", "'--authorizer' (env var: 'MOCKRAFT_AUTHORIZER'): "),
        ("LOG_LEVEL", "loud", "'--log-level' (env var: 'MOCKRAFT_LOG_LEVEL'): loud is not a log level"),
        ("SSL_CLIENT_AUTH", "no", "--ssl-client-auth (env var: 'MOCKRAFT_SSL_CLIENT_AUTH')"),
    ],
)
def test_errors_name_the_variable(variable: str, text: str, error: str) -> None:
    environment = {**os.environ, f"MOCKRAFT_{variable}": text}
    command = [sys.executable, "-m", "mockraft", "serve", "--port", "0"][: None if variable != "PORT" else 4]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert run.returncode == 2
    assert error in run.stderr


def test_almost_named_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SESION_TIMEOUT_MS", "PROT", "BUDGET", "ADMIN", "ADMIN_TOKEN", "IMAGE", "SERVICE_HOST"):
        monkeypatch.setenv(f"MOCKRAFT_{name}", "1")

    assert list(misspelled_variables()) == [
        ("MOCKRAFT_PROT", "did you mean MOCKRAFT_PORT?"),
        ("MOCKRAFT_SESION_TIMEOUT_MS", "did you mean MOCKRAFT_SESSION_TIMEOUT_MS?"),
    ]


def by_typer(arguments: list[str]) -> dict[str, Any]:
    """Return the options that Typer reads."""
    given: list[dict[str, Any]] = []

    def take(options: dict[str, Any]) -> int:
        given.append(options)
        return 0

    app = typer.Typer()
    app.command()(_typer_function(take))
    app(arguments, standalone_mode=False)
    return given[0]
