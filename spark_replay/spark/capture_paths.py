"""Which files `load(…)` means: paths, globs and folders on a file system that every worker sees."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from glob import glob, has_magic
from pathlib import Path
from urllib.parse import unquote, urlsplit

CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap)\d*(\.(gz|zst))?$", re.IGNORECASE)
"""Of a folder, the files with such names are captures (`x.pcap7` is a ring buffer's); a path or glob takes any name."""


class NoCaptureError(ValueError):
    """A path that names no capture, and why."""


def capture_paths(paths: Iterable[str]) -> list[str]:
    """The capture files that `paths` name, each once, sorted; NoCaptureError for a path that names none."""
    found: set[str] = set()
    for path in paths:
        files = set(_files(local_path(path)))
        if not files:
            raise NoCaptureError(f"no capture file at {path}")
        found |= files
    return sorted(found)


def folder_captures(path: str) -> list[str]:
    """The capture files in a folder and those under it, or that a glob names, as they are now: perhaps none."""
    return sorted(set(_files(local_path(path))))


def local_path(path: str) -> str:
    """A path as Python opens it: plain or file:// (NoCaptureError for another scheme)."""
    scheme, rest = (split := urlsplit(path)).scheme, split.path
    if scheme == "file":
        return unquote(rest)
    if scheme and "://" in path:
        raise NoCaptureError(
            f"{path}: captures are opened by Python on every worker; mount {scheme}:// as a folder, or copy them to one"
        )
    return path


def loaded_paths(options: Mapping[str, str]) -> list[str]:
    """What `load(path)` or `load([path, …])` was given; NoCaptureError for nothing."""
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
