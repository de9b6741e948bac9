"""Recorded runs shipped with mockraft: the results of a real controller, for use where none is available."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import resources
from pathlib import Path

from mockraft.conformance.verdicts import Run

_FOLDER = resources.files("mockraft.conformance").joinpath("baselines")
EXCHANGES = _FOLDER.joinpath("exchanges.json")
"""The exchanges of the cases that the releases answer differently, as `observed` reads them."""
_PREFIX = "kafka-"
_KEPT = ("name", "area", "rank", "source", "outcome", "reason")


def names() -> list[str]:
    """Names that `read` accepts."""
    return sorted(each.name.removesuffix(".json") for each in _FOLDER.iterdir() if each.name.startswith(_PREFIX))


def read(name: str) -> Run:
    """Read the run of that name."""
    return Run.read_json(_FOLDER.joinpath(f"{name}.json"))


def write(found: Run, path: Path) -> None:
    """Write a run in the short form that `read` accepts: one line per case, without times and details."""
    head = {
        "target": path.stem,
        "cluster_id": "",
        "metadata_version": found.metadata_version,
        "release": found.release,
    }
    verdicts = [{key: tree[key] for key in _KEPT if tree[key]} for tree in map(asdict, found.verdicts)]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in verdicts)
    path.write_text(f'{json.dumps(head)[:-1]}, "verdicts": [\n{lines}\n]}}\n', encoding="utf-8")
