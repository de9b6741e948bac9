"""Recorded runs shipped with mockraft: the results of a real controller, for use where none is available."""

from __future__ import annotations

from importlib import resources

from mockraft.conformance.verdicts import Run

_FOLDER = resources.files("mockraft.conformance").joinpath("baselines")
EXCHANGES = _FOLDER.joinpath("exchanges.json")
"""The exchanges of the cases that the releases answer differently, as `observed` reads them."""
_PREFIX = "kafka-"


def names() -> list[str]:
    """Names that `read` accepts."""
    return sorted(each.name.removesuffix(".json") for each in _FOLDER.iterdir() if each.name.startswith(_PREFIX))


def read(name: str) -> Run:
    """Read the run of that name."""
    return Run.read_json(_FOLDER.joinpath(f"{name}.json"))
