"""Proposals as options of a controller: `--profile` and `--schemas`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.wire.overlay import Overlay

NAMES = ("kip-18", "kip-113", "kip-858", "kip-1066")
"""Names of the profiles."""


def overlay_of(profiles: Iterable[str] = (), schemas: Iterable[str | Path] = ()) -> Overlay | None:
    """Return the messages of profiles and of the user's folders as one overlay; None without any.

    ValueError for an unknown profile, and for a wrong message spec: it names the file and the field.
    """
    folders = [_folder(_known(name)) for name in profiles] + [Path(folder) for folder in schemas]
    if not folders:
        return None
    # Without proposals the generator is not imported.
    from mockraft.codegen.overlay import load

    return load(folders)


def proposals_of(profiles: Iterable[str]) -> frozenset[str]:
    """Return the proposals of some profiles, whose behaviour a controller has. ValueError for an unknown one."""
    return frozenset(map(_known, profiles))


def _known(name: str) -> str:
    if name not in NAMES:
        raise ValueError(f"there is no profile {name!r}; there are {', '.join(NAMES)}")
    return name


def _folder(name: str) -> Path:
    import mockraft.schemas_json

    return Path(next(iter(mockraft.schemas_json.__path__))) / "proposals" / name
