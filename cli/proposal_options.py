"""`--profile` and `--schemas` as several commands have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.kafka_api.options import blaming, option
from mockraft.testing.proposals import NAMES, overlay_of

if TYPE_CHECKING:
    from mockraft.wire.overlay import Overlay

_PROFILE = f"Implement this proposal as its text words it: {', '.join(NAMES)}."


@dataclass(frozen=True, kw_only=True)
class ProposalOptions:
    """Options of commands that speak the messages of proposals."""

    profile: list[str] | None = option(None, metavar="KIP", help=_PROFILE, choices=NAMES, group="Proposals")
    schemas: list[Path] | None = option(
        None, metavar="DIR", help="Add the messages whose Kafka-style JSON specs are in DIR.", group="Proposals"
    )

    def overlay(self) -> Overlay | None:
        """Return the messages that the options name; a bad option ends the command with exit code 2."""
        with blaming("'--profile' / '--schemas'"):
            return overlay_of(self.profile or (), self.schemas or ())
