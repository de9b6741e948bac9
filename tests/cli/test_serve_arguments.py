from pathlib import Path
from typing import Any

import pytest
from mockraft.cli.command_line import read
from mockraft.cli.serve.options import OPTIONS, misspelled_variables

from ..rows import each_row
from .cli import invoke

TABLE = tuple(OPTIONS.values())


def given(*arguments: str) -> dict[str, Any]:
    """Return the options that arguments and variables give."""
    found = read(TABLE, arguments)
    return {name: found.values[name] for name in found.given}


@each_row(
    ("arguments", "options"),
    [
        ("", {}),
        ("--port 0 --host=0.0.0.0 --node-id 7", {"port": 0, "host": "0.0.0.0", "node_id": 7}),
        ("--port 1 --port 2", {"port": 2}),
        ("--seed -5", {"seed": -5}),
        ("--as-version 3.9", {"release": "3.9"}),
        ("--authorizer --super-users=User:a;User:b", {"authorizer": True, "super_users": "User:a;User:b"}),
        ("--api-versions Fetch=0-1 --api-versions=52=off", {"api_versions": ["Fetch=0-1", "52=off"]}),
        ("--schemas a --schemas b", {"schemas": [Path("a"), Path("b")]}),
        ("--sasl-enabled-mechanisms PLAIN,scram-sha-256", {"sasl_enabled_mechanisms": ("PLAIN", "SCRAM-SHA-256")}),
        ("--log-level INFO", {"log_level": "info"}),
    ],
)
def test_arguments_give_options(arguments: str, options: dict[str, object]) -> None:
    assert given(*arguments.split()) == options


@each_row(
    ("arguments", "error"),
    [
        ("--port x", "--port: 'x' is not a whole number"),
        ("--port 70000", "--port: it must be 0 to 65535, not 70000"),
        ("--controllers 0", "--controllers: it must be at least 1, not 0"),
        ("--port", "--port: it needs a value"),
        ("--port --authorizer", "--port: it needs a value"),
        ("--authorizer=yes", "--authorizer: it takes no value, and not 'yes'"),
        ("--prot 1", "there is no option --prot; did you mean --port?"),
        ("a-word", "'a-word' is one argument too many"),
        ("-- --port", "'--port' is one argument too many"),
        (
            "--log-level inof",
            "--log-level: 'inof' is none of debug, info, warning, error, critical; did you mean info?",
        ),
    ],
)
def test_wrong_arguments_are_one_line_with_the_option(arguments: str, error: str) -> None:
    refused = invoke("serve", *arguments.split())
    assert (refused.exit_code, refused.output) == (2, f"mockraft serve: {error}\n")


@pytest.mark.parametrize(
    ("variable", "text", "options"),
    [
        ("PORT", "0", {"port": 0}),
        ("PORT", "", {}),
        ("PORT", "tcp://10.0.0.1:9093", {}),
        ("SEED", "-5", {"seed": -5}),
        ("AUTHORIZER", "true", {"authorizer": True}),
        ("AUTHORIZER", "no", {"authorizer": False}),
        ("DATA_DIR", "some where", {"data_dir": Path("some where")}),
        ("API_VERSIONS", "BrokerHeartbeat=0-1 52=off", {"api_versions": ["BrokerHeartbeat=0-1", "52=off"]}),
        ("SCHEMAS", "a:b", {"schemas": [Path("a"), Path("b")]}),
        ("FEATURE", "group.version=0", {"features": ["group.version=0"]}),
    ],
)
def test_variables_give_options(
    variable: str, text: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"MOCKRAFT_{variable}", text)
    assert given() == options


def test_an_option_precedes_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCKRAFT_PORT", "1")
    monkeypatch.setenv("MOCKRAFT_API_VERSIONS", "52=off")
    assert given("--port", "2", "--api-versions", "Fetch=4-16") == {"port": 2, "api_versions": ["Fetch=4-16"]}


@each_row(
    ("variable", "text", "error"),
    [
        ("PORT", "x", "--port (env var: 'MOCKRAFT_PORT'): "),
        ("AUTHORIZER", "maybe", "--authorizer (env var: 'MOCKRAFT_AUTHORIZER'): "),
        ("LOG_LEVEL", "loud", "--log-level (env var: 'MOCKRAFT_LOG_LEVEL'): 'loud' is none of debug"),
        ("SSL_CLIENT_AUTH", "no", "--ssl-client-auth (env var: 'MOCKRAFT_SSL_CLIENT_AUTH')"),
    ],
)
def test_errors_name_the_variable(variable: str, text: str, error: str) -> None:
    refused = invoke("serve", environment={f"MOCKRAFT_{variable}": text})
    assert refused.exit_code == 2
    assert error in refused.stderr


def test_almost_named_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SESION_TIMEOUT_MS", "PROT", "BUDGET", "ADMIN", "ADMIN_TOKEN", "IMAGE", "SERVICE_HOST"):
        monkeypatch.setenv(f"MOCKRAFT_{name}", "1")

    assert list(misspelled_variables()) == [
        ("MOCKRAFT_PROT", "did you mean MOCKRAFT_PORT?"),
        ("MOCKRAFT_SESION_TIMEOUT_MS", "did you mean MOCKRAFT_SESSION_TIMEOUT_MS?"),
    ]
