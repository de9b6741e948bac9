"""Help with a heading over each group of options, where one list would be too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose help has a list of options under each heading of `groups`, which names parameters."""

    groups: ClassVar[Mapping[str, Sequence[str]]] = {}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the groups; takes a click Context and HelpFormatter, which typer may bring itself."""
        shown = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for heading, names in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([record for name in names if (record := shown.get(name))])
