"""Options as rows: default, bounds, help group and help text, each written once.

A field of `ControllerConfig` is declared with `option(…)`, which keeps the row in the field's metadata. `mockraft
serve` makes its command line, its `--help` and docs/reference/serve-options.md from the rows
(mockraft.cli.serve.options).
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from pathlib import Path
from typing import Any, get_args

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
PORT_MAX = 65_535

_ROW = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """One option; numbers are from `lowest` to `highest`. `group` is its heading in --help, empty for none.

    A secret one is not for command lines, which other users of the machine can see: `in_a_file` is the option to give
    it by, and its environment variable.
    """

    name: str
    kind: type
    default: Any
    group: str
    help: str
    lowest: int | None = None
    highest: int | None = None
    is_list: bool = False
    metavar: str | None = None
    shown_default: str | None = None
    is_secret: bool = False

    @property
    def in_a_file(self) -> Option:
        """The option for a file with the value of this secret one."""
        about = f"File with the value of {self.flag}, on one line."
        return Option(f"{self.name}_file", Path, None, self.group, about)

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """The environment variable that `mockraft serve` reads when the option is not given."""
        return f"MOCKRAFT_{self.name.upper()}"

    @property
    def shown_highest(self) -> int | None:
        """The upper bound where it is worth showing; None for the largest number of a Java type."""
        return None if self.highest in (INT_MAX, LONG_MAX) else self.highest


def option(
    default: Any,
    group: str = "",
    help: str = "",  # noqa: A002 - as argparse, click and Typer call it
    *,
    lowest: int | None = 1,
    highest: int = LONG_MAX,
    is_secret: bool = False,
) -> Any:
    """Declare a dataclass field with its row; `lowest` None leaves a number without bounds, a secret has no `repr`."""
    metadata = {_ROW: (group, help, lowest, highest, is_secret)}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), repr=not is_secret, metadata=metadata)
    return field(default=default, repr=not is_secret, metadata=metadata)


def row_of(declared: Field[Any]) -> Option | None:
    """Return a field's row; None for a field that is declared without `option`."""
    if _ROW not in declared.metadata:
        return None
    group, about, lowest, highest, is_secret = declared.metadata[_ROW]
    kinds = [kind for kind in get_args(declared.type) if kind is not type(None)]
    kind = declared.type if isinstance(declared.type, type) else next(iter(kinds), object)
    if kind is not int:
        lowest = highest = None
    return Option(
        declared.name,
        kind if kind in (int, bool, Path) else str,
        declared.default,
        group,
        about,
        lowest,
        highest,
        is_secret=is_secret,
    )
