"""Folders of vectors: `4.4.0/FetchRequest.jsonl` for each release and message, and `manifest.json`.

A line is one `Vector`. The manifest has the format's version and, by release, the messages: Kafka's class, its spec in
the source tree of Kafka, the versions, the number of lines, and the SHA-256 of the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from mockraft.files.given_files import TEXT_BYTES_MAX, read_file, read_text
from mockraft.files.trees import TreeError, json_tree
from mockraft.wire.json_form import Tree

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
MALFORMED: Final = "malformed"
UNKNOWN_TAGS: Final = "unknown tags"


class VectorsError(Exception):
    """A folder of vectors that cannot be used; the message names the file."""


@dataclass(frozen=True, kw_only=True)
class Vector:
    """A body of a message in one version: the JSON of Kafka's converter and the bytes of Kafka's class.

    If `kind` is malformed there is no JSON: `error` is what Kafka's class raises when it reads the bytes.
    """

    version: int
    kind: str
    json: Tree | None = None
    hex: str
    error: str = ""

    @property
    def is_whole(self) -> bool:
        """True if the JSON has all that is in the bytes."""
        return self.kind not in (MALFORMED, UNKNOWN_TAGS)

    def line(self) -> str:
        """Return the JSON line, without `json` or `error` if there is none."""
        tree = {name: value for name, value in asdict(self).items() if value not in (None, "") or name == "hex"}
        return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class MessageVectors:
    """A message in the manifest, and how to check its file."""

    message: str
    kafka_class: str
    spec: str
    versions: list[int]
    vectors: int
    sha256: str


Manifest = Mapping[str, list[MessageVectors]]
"""The messages with vectors, by release."""


def write_message(folder: Path, message: str, vectors: Iterable[Vector]) -> str:
    """Write the file of a message, and return its SHA-256."""
    content = "".join(f"{each.line()}\n" for each in vectors).encode()
    (folder / f"{message}.jsonl").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def write_manifest(folder: Path, mockraft: str, found: Manifest) -> None:
    """Write the manifest; `mockraft` is the version that made the vectors."""
    releases = {name: [asdict(each) for each in messages] for name, messages in found.items()}
    tree = {"format": FORMAT, "mockraft": mockraft, "releases": releases}
    (folder / MANIFEST).write_text(json.dumps(tree, indent=1) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder. VectorsError."""
    path = folder / MANIFEST
    try:
        tree = json_tree(read_text(path, TEXT_BYTES_MAX))
        if tree["format"] != FORMAT:
            raise VectorsError(f"{path} has format {tree['format']}; this mockraft reads format {FORMAT}")
        found = {
            str(name): [MessageVectors(**each) for each in messages] for name, messages in tree["releases"].items()
        }
        names = [*found, *(each.message for messages in found.values() for each in messages)]
        if odd := [name for name in names if not re.fullmatch(r"[\w.]+", name)]:
            raise VectorsError(f"{path} names {odd[0]!r}, which is neither a release nor a message")
    except OSError as error:
        raise VectorsError(f"{path} cannot be read: {error.strerror}") from None
    except (TreeError, KeyError, TypeError, AttributeError) as error:
        raise VectorsError(f"{path} is no manifest of vectors: {error}") from None
    return found


def read_message(folder: Path, kafka_version: str, of: MessageVectors) -> list[Vector]:
    """Read the vectors of a message. VectorsError if the file is not the one that the manifest names."""
    path = folder / kafka_version / f"{of.message}.jsonl"
    try:
        content = read_file(path, TEXT_BYTES_MAX)
    except OSError as error:
        raise VectorsError(f"{path} cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != of.sha256:
        raise VectorsError(f"{path} was changed: its SHA-256 is not that of {MANIFEST}")
    try:
        return [Vector(**json_tree(line)) for line in content.split(b"\n")[:-1]]
    except (TreeError, TypeError) as error:
        raise VectorsError(f"{path} has a line that is no vector: {error}") from None
