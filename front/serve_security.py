"""Options of `mockraft serve` that say who may come in. Passwords come from files: a command line is for all to see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from mockraft.wire.client_security import read_properties
from mockraft.wire.scram import ScramUser

SecurityProtocol = Annotated[
    str, typer.Option(help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL: what the brokers' protocol map says of it.")
]
SslCertificateFile = Annotated[Path | None, typer.Option(help="PEM file of the controller's certificate chain.")]
SslKeyFile = Annotated[Path | None, typer.Option(help="PEM file of its private key, without a password.")]
SslTruststoreFile = Annotated[
    Path | None, typer.Option(help="PEM file of the authorities that sign the brokers' certificates.")
]
SslClientAuth = Annotated[
    str, typer.Option(help="Whether brokers must show a certificate: none, requested or required.")
]
SslPrincipalMappingRules = Annotated[
    str, typer.Option(help="Users out of certificates' names: RULE:pattern/replacement/[LU], …, DEFAULT.")
]
SaslEnabledMechanisms = Annotated[
    str | None, typer.Option(help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; several separated by commas.")
]
PlainUsersFile = Annotated[
    Path | None, typer.Option(help="File of users for PLAIN, a line each: name=password. There are none without it.")
]
ScramUsersFile = Annotated[
    Path | None,
    typer.Option(
        help="File of users that a new log begins with, a line each, as kafka-storage format --add-scram takes them: "
        "SCRAM-SHA-256=[name=broker,password=…]."
    ),
]
ClientConfigFile = Annotated[
    Path | None,
    typer.Option(
        help="Client properties, as Kafka's tools take them, with which this process itself reaches controllers: its "
        "simulated brokers, and the other controllers of its quorum."
    ),
]
ConnectionsMaxReauthMs = Annotated[
    int, typer.Option(min=0, help="A SASL connection must authenticate again within so long; 0 is never.")
]
AuthenticationTimeoutMs = Annotated[
    int, typer.Option(min=1, help="A connection that is not authenticated after so long is closed.")
]
UnauthenticatedConnectionsMax = Annotated[
    int, typer.Option(min=1, help="Further connections are refused while so many are not authenticated.")
]

_ADD_SCRAM = re.compile(r"(?P<mechanism>[^=]+)=\[(?P<components>.*)\]")


def users_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of ControllerConfig that come from files and lists. ValueError for what is none, OSError for no file."""
    client_config = options["client_config_file"]
    mechanisms = options["sasl_enabled_mechanisms"] or ""
    return {
        "sasl_enabled_mechanisms": tuple(name.strip() for name in mechanisms.split(",") if name.strip()),
        "plain_users": plain_users(options["plain_users_file"]),
        "scram_users": scram_users(options["scram_users_file"]),
        "client_security": client_config and read_properties(client_config),
    }


def plain_users(path: Path | None) -> dict[str, str]:
    """Passwords by name out of lines `name=password`. ValueError for a line that is none, OSError without a file."""
    users: dict[str, str] = {}
    for where, line in _lines(path):
        name, equals, password = line.partition("=")
        if not (name and equals and password):
            raise ValueError(f"{where}: it must be name=password")
        users[name] = password
    return users


def scram_users(path: Path | None) -> tuple[ScramUser, ...]:
    """Users out of lines as `kafka-storage format --add-scram` takes them; errors as `plain_users`.

    `SCRAM-SHA-256=[name=alice,iterations=8192,password=alice-secret]`; Kafka's salt and saltedpassword are not taken.
    """
    return tuple(_scram_user(where, line) for where, line in _lines(path))


def _scram_user(where: str, line: str) -> ScramUser:
    form = "SCRAM-SHA-256=[name=…,password=…] or with iterations=… too"
    found = _ADD_SCRAM.fullmatch(line)
    if found is None:
        raise ValueError(f"{where}: it must be {form}")
    components: dict[str, str] = {}
    for component in found["components"].split(","):
        key, _, value = component.partition("=")
        components[key] = value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value
    name, password = components.pop("name", ""), components.pop("password", "")
    iterations = components.pop("iterations", "4096")
    if components or not name or not password or not iterations.isdecimal():
        raise ValueError(f"{where}: it must be {form}")
    return ScramUser(name, password, found["mechanism"], int(iterations))


def _lines(path: Path | None) -> Iterator[tuple[str, str]]:
    """The lines that say something, each with where it stands; never its text, which holds a password."""
    if path is None:
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield f"{path}, line {number}", line
