"""Options that a twin shares with `mockraft serve`."""

from __future__ import annotations

from typing import Any

from mockraft.cli.option_fields import option
from mockraft.cli.serve.options import OPTIONS


def option_of_serve(name: str, about: str | None = None) -> Any:
    """Return an option of `mockraft serve` with its default, bounds and help, or with another help."""
    row = OPTIONS[name]
    bounds = {"min": row.lowest, "max": row.shown_highest} if row.kind is int else {}
    return option(row.default, row.flag, help=about or row.help, metavar=row.metavar, **bounds)
