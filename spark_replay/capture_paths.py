"""Resolve the paths of `read_frames(…)` and `load(…)` to files: paths, URLs, globs and folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from mockraft.spark_replay.storage import Location, LocationError
from mockraft.spark_replay.storage.listing import StoredFile, find_files

CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap)\d*(\.(gz|zst))?$", re.IGNORECASE)
"""File names that are captures in a folder (`x.pcap7` is a ring buffer's); a path or glob accepts any name."""


class NoCaptureError(ValueError):
    """Raised for a path that names no capture, with the reason."""


def capture_paths(paths: Iterable[str]) -> list[str]:
    """Return the capture files of `paths`, each once, sorted. Raises NoCaptureError for a path without any."""
    return [file.path for file in captures(paths)]


def captures(paths: Iterable[str]) -> list[StoredFile]:
    """Return the same as `capture_paths`, with sizes."""
    found: dict[str, StoredFile] = {}
    for path in paths:
        files = capture_files(path)
        if not files:
            raise NoCaptureError(f"no capture file at {path}")
        found |= {file.path: file for file in files}
    return [found[path] for path in sorted(found)]


def capture_files(path: str) -> list[StoredFile]:
    """Return the current capture files of a folder (recursively) or glob, each once, sorted; may be empty.

    Raises NoCaptureError for a location that cannot be listed.
    """
    try:
        return sorted({file.path: file for file in find_files(Location.parse(path), _is_capture)}.values())
    except LocationError as error:
        raise NoCaptureError(str(error)) from None


def loaded_paths(options: Mapping[str, str]) -> list[str]:
    """Return the paths given to `load(path)` or `load([path, …])`. Raises NoCaptureError if there are none."""
    several = options.get("paths")
    paths = list(json.loads(several)) if several else []
    if options.get("path"):
        paths.append(options["path"])
    if not paths:
        raise NoCaptureError('no path: load("captures/*.pcapng"), a folder, or a list of them')
    return paths


def _is_capture(name: str) -> bool:
    return CAPTURE_NAME.search(name) is not None
