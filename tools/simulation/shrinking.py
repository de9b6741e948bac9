"""Shrinking of a failing script to the few events that are needed, printed as a test to paste.

Delta debugging (Zeller's ddmin): leave out chunks of events, smaller and smaller ones, as long as the same invariant is
violated. Each event draws from a generator of its own, so that leaving one out does not change the others.
"""

from __future__ import annotations

import itertools
import traceback
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from .invariants import BrokenError
from .scripts import Script, Setup
from .storage import PageCache
from .world import World

MARGIN_MS = 2_000
"""A violation that moves further than this into the future is not looked for: a shorter run is quicker."""


class Violation(NamedTuple):
    """A violated invariant, and when."""

    invariant: str
    why: str
    elapsed_ms: int


def violation(
    setup: Setup, script: Script, *, until_ms: int | None = None, data_dir: Path | None = None
) -> Violation | None:
    """Run a script in a new world; return the first violation, or the first exception by its class."""
    world = None
    page_cache = PageCache()
    try:
        with patch("os.fsync", page_cache.fsync):
            world = World(setup, data_dir, page_cache)
            world.run(script, until_ms=until_ms)
    except BrokenError as broken:
        return Violation(broken.invariant, str(broken), world.elapsed_ms if world is not None else 0)
    except Exception as error:
        return Violation(type(error).__name__, traceback.format_exc(), world.elapsed_ms if world is not None else 0)
    finally:
        if world is not None:
            world.close()
        page_cache.close()
    return None


def shrink(setup: Setup, script: Script, data_dir: Path | None = None) -> Script:
    """Return a part of the script that violates the same invariant, and none of whose events can be left out.

    With `data_dir` each attempt has a new directory in it.
    """
    attempts = itertools.count()

    def attempt(events: Script, until_ms: int | None = None) -> Violation | None:
        folder = data_dir / f"attempt-{next(attempts)}" if data_dir is not None else None
        return violation(setup, events, until_ms=until_ms, data_dir=folder)

    found = attempt(script)
    assert found is not None, "the script violates nothing"
    invariant, is_early = found.invariant, found.elapsed_ms < setup.lasts_ms - MARGIN_MS
    until_ms = found.elapsed_ms + MARGIN_MS if is_early else None

    def fails(events: Script) -> bool:
        other = attempt(events, until_ms)
        return other is not None and other.invariant == invariant

    size = len(script) // 2
    while size:
        begin, is_shorter = 0, False
        while begin < len(script):
            rest = script[:begin] + script[begin + size :]
            if fails(rest):
                script, is_shorter = rest, True
            else:
                begin += size
        size = size if is_shorter and size == 1 else size // 2
    return script


def as_test(setup: Setup, script: Script, invariant: str, *, on_disk: bool) -> str:
    """Return a test to paste, that fails as the script does."""
    argument, data_dir = ("tmp_path: Path", ", data_dir=tmp_path") if on_disk else ("", "")
    events = "".join(f"        {event!r},\n" for event in script)
    return (
        f"def test_{invariant}_in_seed_{setup.seed}({argument}) -> None:\n"
        f"    setup = {setup!r}\n    script = [\n{events}    ]\n    assert violation(setup, script{data_dir}) is None\n"
    )
