"""Options of `mockraft broker`, and the broker config made from them."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mockraft.brokers.config import fields_in
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import ProposalOptions, client_security, host_and_port, hosts_and_ports
from mockraft.kafka_api.options import OptionError, option, required
from mockraft.wire import messages

HEADINGS = ("Broker", "Log directories", "Disks that fail (each may be repeated)", "Proposals", "Run")


class IoErrorRule(enum.StrEnum):
    """Effect of an I/O error of a log; see `BrokerConfig.io_errors`."""

    KAFKA = "kafka"
    KIP_18 = "kip-18"


BROKER_ABOUT = """Run one simulated broker on any KRaft controller, mockraft's or Kafka's.

With --log-dir it keeps its replicas there, in Kafka's own files; such directories must be formatted, as Kafka's must.
Without, they are in memory. It prints a line for each step of its life. SIGTERM and Ctrl-C begin a controlled
shutdown, a second one ends it at once.

  mockraft broker --id 1 --bootstrap-controller 127.0.0.1:9093
  mockraft broker --id 1 --bootstrap-controller 127.0.0.1:9093 --format --log-dir d1 --log-dir d2
  mockraft broker … --log-dir d1 --log-dir d2 --slow d1=50 --fill d2@10 --fail-log-dir d2@30

""" + exit_codes(
    ExitCode.CANNOT_LISTEN,
    ExitCode.UNUSABLE_DIRECTORY,
    ExitCode.NO_ANSWER,
    failed="it had to stop as a real broker would have",
)


@dataclass(frozen=True, kw_only=True)
class ControllerOptions:
    """Options of commands that connect to controllers: where they are, and how to log in."""

    bootstrap_controller: str = required(help="host:port of a controller; several separated by commas.", group="Broker")
    command_config: Path | None = option(
        None,
        help="Client properties, as Kafka's tools take them: security.protocol, PEM files in ssl.truststore.location "
        "and ssl.keystore.location, sasl.mechanism, username and password in sasl.jaas.config.",
        group="Broker",
    )

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """The controllers; OptionError for what is not host:port."""
        return hosts_and_ports(self.bootstrap_controller, "--bootstrap-controller")


@dataclass(frozen=True, kw_only=True)
class RunOptions(ControllerOptions):
    """Options of commands that run simulated brokers."""

    cluster_id: str | None = option(
        None,
        help="The cluster's id. Default: that of the log directories, else the controller is asked.",
        group="Broker",
    )
    for_s: float | None = option(None, "--for", lowest=0, help="Stop after so many seconds.", group="Run")


@dataclass(frozen=True, kw_only=True)
class DiskFaultOptions:
    """Options that break disks."""

    fail_log_dir: list[str] | None = option(
        None,
        metavar="DIR[@S]",
        help="This directory fails, S seconds after the broker runs.",
        group="Disks that fail (each may be repeated)",
    )
    fill: list[str] | None = option(
        None, metavar="DIR[@S]", help="This directory has no room left.", group="Disks that fail (each may be repeated)"
    )
    slow: list[str] | None = option(
        None, metavar="DIR=MS[@S]", help="It takes so many ms longer.", group="Disks that fail (each may be repeated)"
    )
    flaky: list[str] | None = option(
        None,
        metavar="DIR=P[@S]",
        help="Its operations fail with this probability; see --seed.",
        group="Disks that fail (each may be repeated)",
    )
    corrupt: list[str] | None = option(
        None,
        metavar="FILE[@S]",
        help="The byte in the middle of this file is flipped.",
        group="Disks that fail (each may be repeated)",
    )
    heal: list[str] | None = option(
        None,
        metavar="DIR[@S]",
        help="It works again, for what is not offline.",
        group="Disks that fail (each may be repeated)",
    )


@dataclass(frozen=True, kw_only=True)
class BrokerOptions(RunOptions):
    """Options of `mockraft broker` itself."""

    broker_id: int = required("--id", lowest=0, highest=2**31 - 1, help="The broker's node.id.", group="Broker")
    rack: str | None = option(None, help="broker.rack", group="Broker")
    log_dir: list[str] | None = option(
        None, help="Path of a log directory; may be repeated. Default: in memory.", group="Log directories"
    )
    metadata_log_dir: str | None = option(
        None,
        help="metadata.log.dir: a broker whose metadata log dir fails stops. Default: the first.",
        group="Log directories",
    )
    format_missing: bool = option(
        False,
        "--format",
        help="Format the log directories that are not, as `mockraft format` does.",
        group="Log directories",
    )
    listener: str | None = option(
        None, help="host:port where clients find it. Default: any free port of 127.0.0.1.", group="Broker"
    )
    cordoned_log_dir: list[str] | None = option(
        None, metavar="DIR", help="Take no new replicas there (cordoned.log.dirs); * is all.", group="Log directories"
    )
    io_errors: IoErrorRule = option(
        IoErrorRule.KAFKA,
        help="kafka: any I/O error takes the directory offline; kip-18: one replica, where the disk is well.",
        group="Log directories",
    )
    restart_partitions_elsewhere: bool = option(
        False, help="Lost replicas begin anew in another directory (KIP-18).", group="Log directories"
    )
    settings: list[str] | None = option(
        None, "--set", metavar="NAME=VALUE", help="A property as in server.properties; may be repeated.", group="Broker"
    )
    seed: int | None = option(None, help="Seed of everything random, for runs that repeat.", group="Run")

    def fields(self, proposals: ProposalOptions) -> dict[str, Any]:
        """Return fields of BrokerConfig and arguments of what draws it. OptionError."""
        host, port = host_and_port(self.listener, "--listener") if self.listener else ("127.0.0.1", None)
        found: dict[str, Any] = {
            "rack": self.rack,
            "host": host,
            "port": port,
            "serve_clients": True,
            "security": client_security(self.command_config),
            "messages": proposals.overlay() or messages,
            "cordoned_log_dirs": cordoned(self.cordoned_log_dir or ()),
            "io_errors": str(self.io_errors),
            "restart_partitions_elsewhere": self.restart_partitions_elsewhere,
            "properties": properties_of(self.settings or ()),
            **proposed(proposals.profile or ()),
        }
        if not self.log_dir and (self.metadata_log_dir or self.format_missing):
            raise OptionError("which directories? name them with --log-dir", "--log-dir")
        return found


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


def properties_of(settings: Sequence[str]) -> dict[str, str]:
    """Return the properties that settings NAME=VALUE name. OptionError for an invalid one."""
    properties: dict[str, str] = {}
    for text in settings:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise OptionError(f"{text!r} is not NAME=VALUE", "--set")
        if name in _OPTIONS_INSTEAD:
            raise OptionError(f"{name} is {_OPTIONS_INSTEAD[name]}", "--set")
        properties[name] = value
    try:
        fields_in(properties)
    except ValueError as error:
        raise OptionError(str(error), "--set") from error
    return properties


def cordoned(log_dirs: Sequence[str]) -> str:
    """cordoned.log.dirs that names these directories: absolute paths, or * alone. OptionError."""
    if "*" in log_dirs and len(log_dirs) > 1:
        raise OptionError("* means all, and stands alone", "--cordoned-log-dir")
    return ",".join(path if path == "*" else os.path.abspath(path) for path in log_dirs)


def proposed(profiles: Sequence[str]) -> Mapping[str, object]:
    """Return the config fields that these proposals change."""
    fields: dict[str, object] = {}
    if "kip-858" in profiles:
        fields["fenced_until_assigned"] = True
    if "kip-18" in profiles:
        fields["io_errors"] = "kip-18"
    return fields
