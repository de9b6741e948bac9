"""Help with a heading over each group of options or commands, where one list would be too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup


class GroupedCommand(TyperCommand):
    """A command whose help has a list of options under each heading of `groups`, which names parameters."""

    groups: ClassVar[Mapping[str, Sequence[str]]] = {}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the groups; takes a click Context and HelpFormatter, which typer may bring itself."""
        shown = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for heading, names in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([record for name in names if (record := shown.get(name))])


class GroupedCommands(TyperGroup):
    """The command `mockraft`, whose help lists its commands by what they are for."""

    groups: ClassVar[Mapping[str, Sequence[str]]] = {
        "Run a cluster": ("serve", "run", "run-kafka", "broker", "fleet", "health"),
        "Use a running controller (serve --admin-port 8080)": (
            "stubs",
            "faults",
            "scenarios",
            "requests",
            "brokers",
            "topics",
            "records",
            "state",
            "clock",
            "recordings",
        ),
        "Capture and replay traffic": ("capture", "record", "replay", "serve-capture", "spark"),
        "Read and write bytes": ("decode", "encode", "explain"),
        "Compare with Kafka": ("conformance", "differences"),
        "Prepare brokers": ("format", "random-uuid", "broker-id"),
    }

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each group with the first line of their help."""
        width = max(map(len, self.commands))
        for heading, names in self.groups.items():
            with formatter.section(heading):
                rows = [(name.ljust(width), self.commands[name].get_short_help_str(100)) for name in names]
                formatter.write_dl(rows)
