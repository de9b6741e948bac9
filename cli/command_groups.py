"""The commands of `mockraft` by what they are for, and the group that imports each when it is used.

Help and completion need names and one line for each, which are here; importing all commands takes 0.3 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group


class Listed(NamedTuple):
    """A command: its module in `mockraft.cli`, whose `register` adds it, and its line in the help."""

    module: str
    about: str


GROUPS: Mapping[str, Mapping[str, Listed]] = {
    "Run a cluster": {
        "serve": Listed("serve.help", "Run a controller, or a quorum of several."),
        "run": Listed("run.command", "Show a controller with simulated brokers, live."),
        "run-kafka": Listed("run_kafka", "Run real Kafka brokers on mockraft."),
        "broker": Listed("broker.command", "Run one simulated broker on any controller."),
        "fleet": Listed("fleet.command", "Run many simulated brokers on any controller."),
        "health": Listed("health", "Check that a controller can commit records."),
    },
    "Use a running controller (serve --admin-port 8080)": {
        "stubs": Listed("admin", "List, add, switch and remove stubs."),
        "faults": Listed("admin", "List, add and switch faults."),
        "scenarios": Listed("admin", "List and set the scenarios of stubs."),
        "requests": Listed("admin", "List or follow the requests that it receives."),
        "brokers": Listed("admin", "List, fence and unregister brokers."),
        "topics": Listed("admin", "List topics; elect leaders."),
        "records": Listed("admin", "Read the metadata log; append records."),
        "state": Listed("admin", "Show, save, load, restart or reset the controller."),
        "clock": Listed("admin", "Show the clock; advance a virtual one."),
        "recordings": Listed("admin", "Record another controller's responses as stubs."),
        "mcp": Listed("mcp.command", "Let an assistant script a controller and write the test (MCP)."),
    },
    "Capture and replay traffic": {
        "capture": Listed("traffic.capture", "Record the traffic between brokers and controllers."),
        "record": Listed("traffic.record", "Record a controller's responses as a stub file."),
        "replay": Listed("traffic.replay", "Send a capture's requests again and compare the responses."),
        "serve-capture": Listed("serve.capture", "Answer brokers with the responses of a capture."),
        "spark": Listed("spark.command", "Decode, verify, replay and report captures on Spark."),
    },
    "From an incident to a test": {
        "twin": Listed("twin.command", "Run a copy of a real controller, from its files or a capture."),
        "redact": Listed("twin.redact", "Copy a controller's metadata without names and secrets."),
        "lab": Listed("lab", "Run a test under many schedules of the controller."),
    },
    "Read and write bytes": {
        "decode": Listed("codec.command", "Decode bytes to JSON, as Kafka's converters write it."),
        "encode": Listed("codec.command", "Encode JSON to bytes, printed as hex."),
        "explain": Listed("codec.command", "Explain every byte: offset, field, type and value."),
    },
    "Compare with Kafka": {
        "conformance": Listed("conformance.command", "Compare a controller with Kafka's."),
        "cluster-tests": Listed("cluster_tests", "Run Kafka's @ClusterTest classes on mockraft."),
        "differences": Listed("conformance.command", "List the known differences from Kafka."),
    },
    "Prepare brokers": {
        "format": Listed("format_directories", "Format a broker's log directories, as kafka-storage does."),
        "random-uuid": Listed("format_directories", "Draw a cluster id."),
        "broker-id": Listed("broker.ids", "Give brokers ids by their hosts' names."),
    },
}

COMMANDS: Mapping[str, Listed] = {name: listed for group in GROUPS.values() for name, listed in group.items()}


class CommandGroups(TyperGroup):
    """The command `mockraft`. `commands` has those that were used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of this name."""
        if cmd_name not in self.commands and cmd_name in COMMANDS:
            app = typer.Typer(rich_markup_mode=None, add_completion=False)
            import_module(f"mockraft.cli.{COMMANDS[cmd_name].module}").register(app)
            self.commands.update(get_group(app).commands)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name; a misspelled one is compared with all."""
        if args and args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each group with their lines; takes a click Context and HelpFormatter."""
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), listed.about) for name, listed in commands.items()])
