"""The files of `mockraft.schemas_json`: the tables of each release, and its message specs.

A release has the specs in its own folder, and those of newer releases that it shares.
"""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from mockraft import schemas_json

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

FOLDERS = ("message", "metadata", "raft")
"""The folders of a release that hold specs."""

SOURCE_FILE = "SOURCE.toml"


def versions(root: Traversable) -> list[str]:
    """Return the releases in a folder of releases, the newest first."""
    found = [each.name for each in root.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+\S*", each.name)]
    return sorted(found, key=sort_key, reverse=True)


def sort_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: 4.10.0 is newer than 4.9.1."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def read(root: Traversable, version: str) -> dict[str, str]:
    """Return every spec of a release by its path (`message/FetchRequest.json`). Raises FileNotFoundError."""
    texts: dict[str, str] = {}
    for each in versions(root):
        texts = _over(root / each, texts)
        if each == version:
            return texts
    raise FileNotFoundError(f"{root} has no release {version}")


def _over(folder: Traversable, newer: Mapping[str, str]) -> dict[str, str]:
    """Return the specs of the release in a folder, given those of the next newer one."""
    import tomllib  # not with the module, which every controller imports

    source = folder / SOURCE_FILE
    absent = tomllib.loads(source.read_text(encoding="utf-8")).get("absent", ()) if source.is_file() else ()
    texts = {path: text for path, text in newer.items() if path not in absent} | own_files(folder)
    return dict(sorted(texts.items()))


def own_files(folder: Traversable) -> dict[str, str]:
    """Return the specs in the folder of one release by path."""
    return {
        f"{part}/{file.name}": file.read_text(encoding="utf-8")
        for part in FOLDERS
        if (folder / part).is_dir()
        for file in (folder / part).iterdir()
        if file.name.endswith(".json")
    }


@cache
def shipped(version: str) -> Mapping[str, str]:
    """Return the specs of a supported release by path. A spec that a newer release shares is the same object."""
    newer = [each for each in shipped_versions() if sort_key(each) > sort_key(version)]
    return _over(_root() / version, shipped(newer[-1]) if newer else {})


def shipped_versions() -> list[str]:
    """Return the supported releases, the newest first."""
    return versions(_root())


def table(holders: Sequence[str], file: str) -> Any:
    """Return the content of a JSON file, `configs.json`, of the first of these releases that has it."""
    for version in holders:
        with suppress(FileNotFoundError):
            data = pkgutil.get_data(schemas_json.__name__, f"{version}/{file}")
            assert data is not None, "every loader of modules can read a package's files"
            return json.loads(data)
    raise FileNotFoundError(f"no {file} in {', '.join(holders)}")


def _root() -> Traversable:
    from importlib import resources  # not with the module, which every controller imports

    return resources.files(schemas_json)
