"""Options of `mockraft broker`, and the broker config made from them."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from mockraft.commands.grouped_help import GroupedCommand

GROUPS = {
    "Broker": ("broker_id", "bootstrap_controller", "cluster_id", "rack", "listener", "settings", "command_config"),
    "Log directories": (
        "log_dir",
        "metadata_log_dir",
        "format_missing",
        "cordoned_log_dir",
        "io_errors",
        "restart_partitions_elsewhere",
    ),
    "Disks that fail (each may be repeated)": ("fail_log_dir", "fill", "slow", "flaky", "corrupt", "heal"),
    "Proposals": ("profile", "schemas"),
    "Run": ("for_s", "seed", "help"),
}
"""Parameters of `broker` by the heading that they stand under, in the order in which they are shown."""


class IoErrorRule(enum.StrEnum):
    """Effect of an I/O error of a log; see `BrokerConfig.io_errors`."""

    KAFKA = "kafka"
    KIP_18 = "kip-18"


BROKER_ABOUT = """Run one simulated broker on any KRaft controller, mockraft's or Kafka's.

With --log-dir it keeps its replicas there, in Kafka's own files; such directories must be formatted, as Kafka's must.
Without, they are in memory. It prints a line for each step of its life. SIGTERM and Ctrl-C begin a controlled
shutdown, a second one ends it at once.

\b
  mockraft broker --id 1 --bootstrap-controller 127.0.0.1:9093
  mockraft broker --id 1 --bootstrap-controller 127.0.0.1:9093 --format --log-dir d1 --log-dir d2
  mockraft broker … --log-dir d1 --log-dir d2 --slow d1=50 --fill d2@10 --fail-log-dir d2@30

Exit codes: 1 it had to stop as a real broker would have, 2 a bad option, 3 the listener cannot be had, 4 the log
directories cannot be used, 5 no controller answered.
"""

BrokerId = Annotated[int, typer.Option("--id", min=0, max=2**31 - 1, help="The broker's node.id.")]
Bootstrap = Annotated[
    str, typer.Option("--bootstrap-controller", help="host:port of a controller; several separated by commas.")
]
ClusterId = Annotated[
    str | None,
    typer.Option(help="The cluster's id. Default: that of the log directories, else the controller is asked."),
]
Rack = Annotated[str | None, typer.Option(help="broker.rack")]
LogDirPaths = Annotated[
    list[str] | None, typer.Option("--log-dir", help="Path of a log directory; may be repeated. Default: in memory.")
]
MetadataLogDir = Annotated[
    str | None, typer.Option(help="metadata.log.dir: a broker whose metadata log dir fails stops. Default: the first.")
]
Format = Annotated[
    bool, typer.Option("--format", help="Format the log directories that are not, as `mockraft format` does.")
]
ListenerText = Annotated[
    str | None,
    typer.Option("--listener", help="host:port where clients find it. Default: any free port of 127.0.0.1."),
]
CordonedLogDir = Annotated[
    list[str] | None, typer.Option(metavar="DIR", help="Take no new replicas there (cordoned.log.dirs); * is all.")
]
IoErrors = Annotated[
    IoErrorRule,
    typer.Option(help="kafka: any I/O error takes the directory offline; kip-18: one replica, where the disk is well."),
]
RestartElsewhere = Annotated[
    bool,
    typer.Option("--restart-partitions-elsewhere", help="Lost replicas begin anew in another directory (KIP-18)."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A property as in server.properties; may be repeated."),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="Client properties, as Kafka's tools take them: security.protocol, PEM files in ssl.truststore.location "
        "and ssl.keystore.location, sasl.mechanism, username and password in sasl.jaas.config."
    ),
]
For = Annotated[float | None, typer.Option("--for", min=0, help="Stop after so many seconds.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random, for runs that repeat.")]


class BrokerCommand(GroupedCommand):
    """`broker`, whose help has a list of options for each of `GROUPS`."""

    groups = GROUPS


_FIELDS_MS = {
    "broker.heartbeat.interval.ms": "heartbeat_interval_ms",
    "broker.session.timeout.ms": "session_timeout_ms",
    "initial.broker.registration.timeout.ms": "registration_timeout_ms",
    "log.dir.failure.timeout.ms": "log_dir_failure_timeout_ms",
}
_OPTIONS_INSTEAD = {
    "node.id": "--id",
    "broker.rack": "--rack",
    "log.dirs": "--log-dir",
    "log.dir": "--log-dir",
    "metadata.log.dir": "--metadata-log-dir",
    "cordoned.log.dirs": "--cordoned-log-dir",
    "listeners": "--listener",
    "controller.quorum.bootstrap.servers": "--bootstrap-controller",
}


def fields_of(settings: Sequence[str]) -> dict[str, object]:
    """Fields of BrokerConfig for settings NAME=VALUE; what has no field of its own is one of `properties`.

    BadParameter for what is no setting, for a time that is no number from 1 on, and for what has an option.
    """
    fields: dict[str, object] = {}
    properties: dict[str, str] = {}
    for text in settings:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
        if name in _OPTIONS_INSTEAD:
            raise typer.BadParameter(f"{name} is {_OPTIONS_INSTEAD[name]}", param_hint="--set")
        if name not in _FIELDS_MS:
            properties[name] = value
        elif value.isdecimal() and int(value) >= 1:
            fields[_FIELDS_MS[name]] = int(value)
        else:
            about = f"Invalid value {value} for configuration {name}: a whole number of ms, at least 1"
            raise typer.BadParameter(about, param_hint="--set")
    return {**fields, "properties": properties}


def cordoned(log_dirs: Sequence[str]) -> str:
    """cordoned.log.dirs that names these directories: absolute paths, or * alone. BadParameter."""
    if "*" in log_dirs and len(log_dirs) > 1:
        raise typer.BadParameter("* means all, and stands alone", param_hint="--cordoned-log-dir")
    return ",".join(path if path == "*" else os.path.abspath(path) for path in log_dirs)


def proposed(profiles: Sequence[str]) -> Mapping[str, object]:
    """Return the config fields that these proposals change."""
    fields: dict[str, object] = {}
    if "kip-858" in profiles:
        fields["fenced_until_assigned"] = True
    if "kip-18" in profiles:
        fields["io_errors"] = "kip-18"
    return fields
