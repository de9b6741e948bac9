"""Options of `mockraft serve`: the fields of `ControllerConfig` that have a help group, and those of the process alone.

`OPTIONS` has all of them: command.py reads the command line by it, tools/pages/serve_options.py prints
docs/reference/serve-options.md from it, and `to_arguments` turns keywords into a command line for child processes and
containers. Each option has an environment variable, too, which is read where the option is not given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mockraft.kafka_api.options import INT_MAX, PORT_MAX, option, options_of
from mockraft.server.config import OPTIONS as OF_THE_CONTROLLER
from mockraft.testing.proposals import NAMES
from mockraft.wire.names import did_you_mean, similar_names

ADMIN_OFF = "off"


class MissingPackageError(Exception):
    """An option needs a package that is not installed."""


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """Options of the process that are not those of a controller."""

    stubs: Path | None = option(
        None, group="Test setup", help="File of stubs, faults and a plan that begin at once, as JSON or YAML."
    )
    until_stdin_ends: bool = option(
        False,
        group="Test setup",
        help="Also stop when standard input ends, as it does when the process at its other end has died.",
    )
    admin_port: str = option(
        ADMIN_OFF,
        group="Admin API",
        help="Port of the admin API and the live page, off for none; 0 takes any free one.",
        metavar="PORT",
    )
    admin_host: str = option("127.0.0.1", group="Admin API", help="Address that the admin API listens on.")
    admin_token_file: Path | None = option(
        None, group="Admin API", help="File with the token that users of the admin API must send (Bearer)."
    )
    admin_insecure: bool = option(
        False, group="Admin API", help="Open the admin API to other machines without a token."
    )
    admin_request_timeout_ms: int = option(
        10_000,
        group="Admin API",
        help="Close a connection to the admin API whose request headers, or then body, are not complete after so long.",
        lowest=1,
        highest=INT_MAX,
    )
    virtual_clock: bool = option(
        False,
        group="Admin API",
        help="Stop time until POST /v1/clock/advance. It excludes --controllers and --brokers.",
    )
    brokers: int = option(
        0, group="Cluster", help="Also run so many simulated brokers in this process, which serve clients.", lowest=0
    )
    broker_heartbeat_interval_ms: int = option(
        2_000,
        group="Cluster",
        help="Heartbeat interval of the simulated brokers (broker.heartbeat.interval.ms). Less makes tests quicker:"
        " client libraries start with 100.",
        lowest=1,
        highest=INT_MAX,
    )
    brokers_port: int = option(
        0,
        group="Cluster",
        help="Port of the first simulated broker; the others take the next ones. 0 takes free ones.",
        lowest=0,
        highest=PORT_MAX,
    )
    controllers: int = option(
        1,
        group="Quorum",
        help="Run a quorum of so many controllers in one process; node ids and ports count up from the given ones.",
        lowest=1,
    )
    observers: int = option(
        0,
        group="Quorum",
        help="Run so many more controllers that follow the quorum and have no vote until they are added.",
        lowest=0,
    )
    plain_users_file: Path | None = option(
        None, group="Security", help="File of users for PLAIN, a line each: name=password. Default: no users."
    )
    scram_users_file: Path | None = option(
        None,
        group="Security",
        help="File of users that a new log begins with, a line each, as kafka-storage format --add-scram takes them: "
        "SCRAM-SHA-256=[name=broker,password=…].",
    )
    client_config_file: Path | None = option(
        None,
        group="Security",
        help="Client properties, as Kafka's tools take them, with which this process itself connects to controllers: "
        "for its simulated brokers and for the other controllers of its quorum.",
    )
    profile: list[str] | None = option(
        None,
        group="Proposals",
        help=f"Implement this proposal as its text words it: {', '.join(NAMES)}.",
        metavar="KIP",
        choices=NAMES,
    )
    schemas: list[Path] | None = option(
        None, group="Proposals", help="Add the messages whose Kafka-style JSON specs are in DIR.", metavar="DIR"
    )
    stay_after_failure: bool = option(
        False,
        group="Metadata log",
        help="Keep answering requests that need no write after the disk is full or another failure that ends all "
        "writes. Default: the process ends with exit code 5.",
    )
    log_level: str = option(
        "info",
        group="Logs",
        help="debug, info, warning or error.",
        choices=("debug", "info", "warning", "error", "critical"),
        metavar="debug|info|warning|error",
    )
    log_json: bool = option(False, group="Logs", help="Write logs on stderr as JSON lines.")


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

_OF_THE_CONTROLLER = tuple(
    replace(each, variables=tuple(flag.replace("--", "MOCKRAFT_").replace("-", "_").upper() for flag in each.flags))
    for each in (*OF_THE_CONTROLLER, *options_of(ProcessOptions))
    if each.group
)
SECRETS = tuple(each for each in _OF_THE_CONTROLLER if each.is_secret)
"""Options that may also be given in a file, by the option `in_a_file`."""

OPTIONS = {each.name: each for each in (*_OF_THE_CONTROLLER, *(each.in_a_file for each in SECRETS))}
"""Every option by its name."""


_OTHER_VARIABLES = ("ADMIN", "ADMIN_TOKEN", "CACHE", "COMMAND_CONFIG", "TEST_CONTROLLER")
"""Variables that other commands and tests read, without their prefix."""


def misspelled_variables() -> Iterator[tuple[str, str]]:
    """Yield variables that no option has, each with the hint of the option that it is almost named after."""
    known = {name for each in OPTIONS.values() for name in each.variables} | {
        f"MOCKRAFT_{name}" for name in _OTHER_VARIABLES
    }
    for name in sorted(each for each in os.environ if each.startswith("MOCKRAFT_") and each not in known):
        names = [each.variables[0].removeprefix("MOCKRAFT_") for each in OPTIONS.values()]
        if near := similar_names(name.removeprefix("MOCKRAFT_"), names, limit=1, cutoff=0.75):
            yield name, f"did you mean MOCKRAFT_{near[0]}?"


def defaults() -> dict[str, object]:
    """Return every option with its default."""
    return {each.name: each.default for each in OPTIONS.values()}


def to_arguments(options: Mapping[str, object]) -> list[str]:
    """Return the arguments of `mockraft serve` for options by name; None and False leave an option out."""
    by_name = {flag[2:].replace("-", "_"): each for each in OPTIONS.values() for flag in each.flags}
    arguments: list[str] = []
    for name, value in options.items():
        if (found := by_name.get(name)) is None:
            raise TypeError(f"{name}: mockraft serve has no such option; {did_you_mean(name, by_name)}")
        if value is True:
            arguments.append(found.flag)
        elif value is not None and value is not False:
            for each in value if isinstance(value, list | tuple) else [value]:
                arguments += [found.flag, str(each)]
    return arguments
