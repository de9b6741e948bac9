"""Proposals for the doors: `--profile` and `--schemas` as the options of a controller."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.server.rules import Rule
    from mockraft.wire.overlay import Overlay

NAMES = ("kip-18", "kip-113", "kip-858", "kip-1066")
"""The profiles there are."""


def overlay_of(profiles: Iterable[str] = (), schemas: Iterable[str | Path] = ()) -> Overlay | None:
    """The messages of some profiles and of folders of one's own, put together; None when there is nothing of either.

    ValueError for a profile that is not there, and for a message spec at fault: it names the file and the field.
    """
    folders = [_folder(_known(name)) for name in profiles] + [Path(folder) for folder in schemas]
    if not folders:
        return None
    # Who uses no proposal need not have the generator in memory.
    from mockraft.codegen.overlay import load

    return load(folders)


def rules_of(profiles: Iterable[str]) -> frozenset[Rule]:
    """The rules of some profiles. ValueError for one that is not there."""
    from mockraft.server.rules import PROFILES

    return frozenset(rule for name in profiles for rule in PROFILES[_known(name)])


def _known(name: str) -> str:
    if name not in NAMES:
        raise ValueError(f"there is no profile {name!r}; there are {', '.join(NAMES)}")
    return name


def _folder(name: str) -> Path:
    import mockraft.schemas_json

    return Path(next(iter(mockraft.schemas_json.__path__))) / "proposals" / name
