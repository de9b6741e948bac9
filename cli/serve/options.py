"""Options of `mockraft serve`: the fields of `ControllerConfig` that have a help group, and those of the process alone.

`OPTIONS` is the only table. arguments.py reads plain command lines by it, help.py makes the Typer command of it,
options_page.py prints docs/reference/serve-options.md from it, and `to_arguments` turns keywords into a command line
for child processes and containers. Each option has an environment variable, too
(`variables`); arguments.py and help.py read it where the option is not given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mockraft.releases import DEFAULT
from mockraft.server.config import ROWS
from mockraft.server.options import INT_MAX, PORT_MAX, Option
from mockraft.testing.proposals import NAMES
from mockraft.wire.names import did_you_mean, similar_names

ADMIN_OFF = "off"


class OptionError(Exception):
    """A value that an option cannot have; `flag` names the option, empty where the message does."""

    def __init__(self, message: str, flag: str = "") -> None:
        super().__init__(message)
        self.flag = flag


class MissingPackageError(Exception):
    """An option needs a package that is not installed."""


@contextmanager
def blaming(flag: str, *errors: type[Exception]) -> Iterator[None]:
    """Report these errors of the block, by default ValueError, as those of an option."""
    caught = errors or (ValueError,)
    try:
        yield
    except caught as error:
        raise OptionError(str(error), flag) from error


_OTHERWISE: Mapping[str, Mapping[str, Any]] = {
    "cluster_id": {"default": None},
    "metadata_version": {
        "kind": str,
        "default": None,
        "lowest": None,
        "highest": None,
        "shown_default": "the newest",
    },
    "release": {"default": None, "metavar": "RELEASE", "shown_default": DEFAULT},
    "features": {"name": "feature", "default": None, "is_list": True, "metavar": "NAME=LEVEL"},
    "server_properties": {"name": "server_property", "default": None, "is_list": True, "metavar": "KEY=VALUE"},
    "api_versions": {"default": None, "is_list": True, "metavar": "API=MIN-MAX"},
    "security_protocol": {"metavar": "[PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL]"},
    "ssl_client_auth": {"metavar": "[none|requested|required]"},
    "sasl_enabled_mechanisms": {"default": None, "metavar": "MECHANISM,…"},
}
"""Differences between an option on the command line, where it is text, and the field of ControllerConfig."""

_OF_THE_PROCESS = (
    Option("stubs", Path, None, "Test setup", "File of stubs, faults and a plan that begin at once, as JSON or YAML."),
    Option(
        "until_stdin_ends",
        bool,
        False,
        "Test setup",
        "Also stop when standard input ends, as it does when the process at its other end has died.",
    ),
    Option(
        "admin_port",
        str,
        ADMIN_OFF,
        "Admin API",
        "Port of the admin API and the live page, off for none; 0 takes any free one.",
        metavar="PORT",
    ),
    Option("admin_host", str, "127.0.0.1", "Admin API", "Address that the admin API listens on."),
    Option(
        "admin_token_file",
        Path,
        None,
        "Admin API",
        "File with the token that users of the admin API must send (Bearer).",
    ),
    Option("admin_insecure", bool, False, "Admin API", "Open the admin API to other machines without a token."),
    Option(
        "admin_request_timeout_ms",
        int,
        10_000,
        "Admin API",
        "Close a connection to the admin API whose request headers, or then body, are not complete after so long.",
        1,
        INT_MAX,
    ),
    Option(
        "virtual_clock",
        bool,
        False,
        "Admin API",
        "Stop time until POST /v1/clock/advance. It excludes --controllers and --brokers.",
    ),
    Option("brokers", int, 0, "Cluster", "Also run so many simulated brokers in this process, which serve clients.", 0),
    Option(
        "brokers_port",
        int,
        0,
        "Cluster",
        "Port of the first simulated broker; the others take the next ones. 0 takes free ones.",
        0,
        PORT_MAX,
    ),
    Option(
        "controllers",
        int,
        1,
        "Quorum",
        "Run a quorum of so many controllers in one process; node ids and ports count up from the given ones.",
        1,
    ),
    Option(
        "plain_users_file",
        Path,
        None,
        "Security",
        "File of users for PLAIN, a line each: name=password. Default: no users.",
    ),
    Option(
        "scram_users_file",
        Path,
        None,
        "Security",
        "File of users that a new log begins with, a line each, as kafka-storage format --add-scram takes them: "
        "SCRAM-SHA-256=[name=broker,password=…].",
    ),
    Option(
        "client_config_file",
        Path,
        None,
        "Security",
        "Client properties, as Kafka's tools take them, with which this process itself connects to controllers: for "
        "its simulated brokers and for the other controllers of its quorum.",
    ),
    Option(
        "profile",
        str,
        None,
        "Proposals",
        f"Implement this proposal as its text words it: {', '.join(NAMES)}.",
        is_list=True,
        metavar="KIP",
    ),
    Option(
        "schemas",
        Path,
        None,
        "Proposals",
        "Add the messages whose Kafka-style JSON specs are in DIR.",
        is_list=True,
        metavar="DIR",
    ),
    Option(
        "stay_after_failure",
        bool,
        False,
        "Metadata log",
        "Keep answering requests that need no write after the disk is full or another failure that ends all writes. "
        "Default: the process ends with exit code 5.",
    ),
    Option("log_level", str, "info", "Logs", "debug, info, warning or error.", metavar="[debug|info|warning|error]"),
    Option("log_json", bool, False, "Logs", "Write logs on stderr as JSON lines."),
)

HEADINGS = (
    "Listening",
    "Test setup",
    "Admin API",
    "Cluster",
    "Metadata log",
    "Quorum",
    "Security",
    "Authorization",
    "Delegation tokens",
    "Proposals",
    "Limits",
    "Logs",
)

_OF_THE_CONTROLLER = [replace(row, **_OTHERWISE.get(row.name, {})) for row in ROWS if row.group]
_RELEASE = next(place for place, row in enumerate(_OF_THE_CONTROLLER) if row.name == "release")
_OF_THE_CONTROLLER.insert(_RELEASE + 1, Option("as_version", str, None, "Cluster", "The same as --release."))
SECRETS = tuple(row for row in _OF_THE_CONTROLLER if row.is_secret)
"""Options that may also be given in a file, by the option `in_a_file`."""

OPTIONS = {row.name: row for row in (*_OF_THE_CONTROLLER, *(row.in_a_file for row in SECRETS), *_OF_THE_PROCESS)}
"""Every option by its name."""

GROUPS = {
    heading: tuple(option.name for option in OPTIONS.values() if option.group == heading) for heading in HEADINGS
} | {"Logs": ("log_level", "log_json", "help")}
"""Names of the options by heading, in the order in which --help lists them."""


_OTHER_VARIABLES = ("ADMIN", "ADMIN_TOKEN", "CACHE", "COMMAND_CONFIG", "TEST_CONTROLLER")
"""Variables that other commands and tests read, without their prefix."""


def variables() -> dict[str, str]:
    """Return the values of the options' environment variables by option; an empty one is as none.

    Kubernetes sets MOCKRAFT_PORT to a URL in the pods beside a service called mockraft: that is no port.
    """
    given = {name: os.environ.get(option.variable, "") for name, option in OPTIONS.items()}
    return {name: text for name, text in given.items() if text and not text.startswith("tcp://")}


def misspelled_variables() -> Iterator[tuple[str, str]]:
    """Yield variables that no option has, each with the hint of the option that it is almost named after."""
    known = {option.variable for option in OPTIONS.values()} | {f"MOCKRAFT_{name}" for name in _OTHER_VARIABLES}
    for name in sorted(each for each in os.environ if each.startswith("MOCKRAFT_") and each not in known):
        options = [option.name for option in OPTIONS.values()]
        if near := similar_names(name.removeprefix("MOCKRAFT_"), options, limit=1, cutoff=0.75):
            yield name, f"did you mean {OPTIONS[near[0]].variable}?"


def defaults() -> dict[str, object]:
    """Return every option with its default."""
    return {option.name: option.default for option in OPTIONS.values()}


def to_arguments(options: Mapping[str, object]) -> list[str]:
    """Return the arguments of `mockraft serve` for options by name; None and False leave an option out."""
    arguments: list[str] = []
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None:
            raise TypeError(f"{name}: mockraft serve has no such option; {did_you_mean(name, OPTIONS)}")
        if value is True:
            arguments.append(option.flag)
        elif value is not None and value is not False:
            for each in value if isinstance(value, list | tuple) else [value]:
                arguments += [option.flag, str(each)]
    return arguments
