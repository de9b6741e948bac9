"""`--profile` and `--schemas` as several commands have them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from mockraft.double.proposals import NAMES, overlay_of

if TYPE_CHECKING:
    from mockraft.wire.overlay import Overlay

Profile = Annotated[
    list[str] | None,
    typer.Option("--profile", metavar="KIP", help=f"Implement this proposal as its text words it: {', '.join(NAMES)}."),
]
Schemas = Annotated[
    list[Path] | None,
    typer.Option("--schemas", metavar="DIR", help="Add the messages whose Kafka-style JSON specs are in DIR."),
]


def overlay(profile: list[str] | None, schemas: list[Path] | None) -> Overlay | None:
    """The messages that the options ask for; a bad option ends the command with exit code 2."""
    if unknown := [name for name in profile or () if name not in NAMES]:
        raise typer.BadParameter(
            f"there is no profile {unknown[0]!r}; there are {', '.join(NAMES)}", param_hint="--profile"
        )
    try:
        return overlay_of(profile or (), schemas or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--schemas") from error
