"""Users and secrets of `mockraft serve`, from files: every user of the machine can see a command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.cli.serve.options import SECRETS
from mockraft.files.given_files import read_text
from mockraft.kafka_api.options import OptionError
from mockraft.kafka_api.security import SECURITY_PROTOCOLS, uses_sasl

if TYPE_CHECKING:
    from mockraft.server.config import ControllerConfig
    from mockraft.wire.client_security import ClientSecurity
    from mockraft.wire.scram import ScramUser

_ADD_SCRAM = re.compile(r"(?P<mechanism>[^=]+)=\[(?P<components>.*)\]")


def users_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of ControllerConfig from files.

    ValueError for bad text, OSError for no file, OptionError for users of a listener without passwords.
    """
    client_config, protocol = options["client_config_file"], options["security_protocol"]
    users = plain_users(options["plain_users_file"])
    if users and protocol in SECURITY_PROTOCOLS and not uses_sasl(protocol):
        about = f"--security-protocol {protocol} asks for no password; SASL_PLAINTEXT and SASL_SSL do"
        raise OptionError(about, "--plain-users-file")
    return {
        "plain_users": users,
        "scram_users": scram_users(options["scram_users_file"]),
        "client_security": _client_security(client_config),
    }


def _client_security(path: Path | None) -> ClientSecurity | None:
    if path is None:
        return None
    from mockraft.kafka_configs.client_properties import read_properties

    return read_properties(path)


def lacks_users(config: ControllerConfig) -> bool:
    """Return True if clients may log in with PLAIN, but no user can."""
    return uses_sasl(config.security_protocol) and "PLAIN" in config.sasl_enabled_mechanisms and not config.plain_users


def secrets_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options whose values are in files. OptionError for a bad file or a second value, OSError for none."""
    found: dict[str, str] = {}
    for option in SECRETS:
        in_a_file = option.in_a_file
        path = options[in_a_file.name]
        if path is None:
            continue
        if options[option.name] is not None:
            raise OptionError(f"{option.flag} is given, too", in_a_file.flag)
        lines = read_text(path).splitlines()
        if len(lines) != 1 or not lines[0]:
            raise OptionError(f"{path}: it must have one line, the value of {option.flag}", in_a_file.flag)
        found[option.name] = lines[0]
    return found


def plain_users(path: Path | None) -> dict[str, str]:
    """Read passwords by name from lines `name=password`. ValueError for another line, OSError without a file."""
    users: dict[str, str] = {}
    for where, line in _lines(path):
        name, equals, password = line.partition("=")
        if not (name and equals and password):
            raise ValueError(f"{where}: it must be name=password")
        users[name] = password
    return users


def scram_users(path: Path | None) -> tuple[ScramUser, ...]:
    """Read users from lines in the form of `kafka-storage format --add-scram`; errors as `plain_users`.

    `SCRAM-SHA-256=[name=alice,iterations=8192,password=alice-secret]`; Kafka's salt and saltedpassword are refused.
    """
    return tuple(_scram_user(where, line) for where, line in _lines(path))


def _scram_user(where: str, line: str) -> ScramUser:
    from mockraft.wire.scram import ScramUser

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
    """Yield place and text of each line with content. Errors name the place only: the text is secret."""
    if path is None:
        return
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield f"{path}, line {number}", line
