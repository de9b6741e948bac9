"""`--profile` and `--schemas` as several commands have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.cli.option_fields import option
from mockraft.cli.refusals import blaming
from mockraft.testing.proposals import NAMES, overlay_of

if TYPE_CHECKING:
    from mockraft.wire.overlay import Overlay

_PROFILE = f"Implement this proposal as its text words it: {', '.join(NAMES)}."


@dataclass(frozen=True, kw_only=True)
class ProposalOptions:
    """Options of commands that speak the messages of proposals."""

    profile: list[str] | None = option(None, "--profile", metavar="KIP", help=_PROFILE)
    schemas: list[Path] | None = option(
        None, "--schemas", metavar="DIR", help="Add the messages whose Kafka-style JSON specs are in DIR."
    )

    def overlay(self) -> Overlay | None:
        """Return the messages that the options name; a bad option ends the command with exit code 2."""
        with blaming("'--profile' / '--schemas'"):
            return overlay_of(self.profile or (), self.schemas or ())
