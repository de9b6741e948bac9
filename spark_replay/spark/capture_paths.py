"""Resolve the argument of `load(…)` to files: paths, globs and folders on a file system that every worker can read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from glob import glob, has_magic
from pathlib import Path
from urllib.parse import unquote, urlsplit

CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap)\d*(\.(gz|zst))?$", re.IGNORECASE)
"""File names that are captures in a folder (`x.pcap7` is a ring buffer's); a path or glob accepts any name."""


class NoCaptureError(ValueError):
    """Raised for a path that names no capture, with the reason."""


def capture_paths(paths: Iterable[str]) -> list[str]:
    """Return the capture files of `paths`, each once, sorted. Raises NoCaptureError for a path without any."""
    found: set[str] = set()
    for path in paths:
        files = set(_files(local_path(path)))
        if not files:
            raise NoCaptureError(f"no capture file at {path}")
        found |= files
    return sorted(found)


def folder_captures(path: str) -> list[str]:
    """Return the current capture files of a folder (recursively) or glob; may be empty."""
    return sorted(set(_files(local_path(path))))


def local_path(path: str) -> str:
    """Return a plain or file:// path as Python opens it. Raises NoCaptureError for another scheme."""
    scheme, rest = (split := urlsplit(path)).scheme, split.path
    if scheme == "file":
        return unquote(rest)
    if scheme and "://" in path:
        raise NoCaptureError(
            f"{path}: captures are opened by Python on every worker; mount {scheme}:// as a folder, or copy the files"
        )
    return path


def loaded_paths(options: Mapping[str, str]) -> list[str]:
    """Return the paths given to `load(path)` or `load([path, …])`. Raises NoCaptureError if there are none."""
    several = options.get("paths")
    paths = list(json.loads(several)) if several else []
    if options.get("path"):
        paths.append(options["path"])
    if not paths:
        raise NoCaptureError('no path: load("captures/*.pcapng"), a folder, or a list of them')
    return paths


def _files(path: str) -> Iterable[str]:
    if has_magic(path) and not Path(path).exists():
        for each in glob(path, recursive=True):
            yield from _files(each) if Path(each).is_dir() else [each]
    elif Path(path).is_dir():
        yield from (str(each) for each in Path(path).rglob("*") if CAPTURE_NAME.search(each.name) and each.is_file())
    elif Path(path).exists():
        yield path
