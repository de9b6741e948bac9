"""The release that a release check is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mockraft.releases import NEWEST, Release, release


@dataclass(frozen=True)
class Subject:
    """The release under check, a folder for all that the steps write, and a function that gets lines of progress."""

    kafka_version: str
    folder: Path
    progress: Callable[[str], None]

    @property
    def schemas(self) -> Path:
        """The folder of releases that has only this one."""
        return self.folder / "schemas_json"

    @property
    def synced(self) -> Path:
        """The folder of this release's specs and facts, once they are read."""
        return self.schemas / self.kafka_version

    @property
    def served(self) -> Release:
        """The release that mockraft serves to it: its own, or the newest if mockraft does not know it."""
        try:
            return release(self.kafka_version)
        except ValueError:
            return release(NEWEST)
