"""Test classes of one Kafka release, made to link with a newer one that has moved some of the classes they use.

A class that the newer release has under the same name in another package is renamed in the constants of the test
classes, as a recompilation with corrected imports would do. A class that it has no more is added from the older one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

_SUFFIX: Final = ".class"
_UTF8: Final = 1
_WIDE: Final = (5, 6)
"""Constants of type long and double: they count twice."""
_SIZES: Final = (
    {15: 3, 5: 8, 6: 8} | dict.fromkeys((7, 8, 16, 19, 20), 2) | dict.fromkeys((3, 4, *range(9, 13), 17, 18), 4)
)
"""Bytes of each type of constant behind its tag (JVM specification, 4.4)."""
_HEAD: Final = struct.Struct(">IHHH")
_LENGTH: Final = struct.Struct(">H")


def adapt(test_jars: Iterable[Path], older: Iterable[Path], newer: Iterable[Path], rest: Path) -> dict[str, str]:
    """Rename moved classes in these jars, and write those that are gone to the jar `rest`; return the new names by old.

    `older` and `newer` are the jars of both releases, without tests.
    """
    old, new = _classes(older), _classes(newer)
    by_name: dict[str, list[str]] = {}
    for name in new:
        by_name.setdefault(name.rpartition("/")[2], []).append(name)
    missing = [name for name in old if name not in new]
    found = {name: by_name.get(name.rpartition("/")[2], []) for name in missing}
    moved = {name: there[0] for name, there in found.items() if len(there) == 1}
    for jar in test_jars:
        _rewrite(jar, moved)
    with ZipFile(rest, "w", ZIP_DEFLATED) as target:
        for name in missing:
            if name not in moved:
                with ZipFile(old[name]) as source:
                    target.writestr(name + _SUFFIX, renamed(source.read(name + _SUFFIX), moved))
    return moved


def renamed(class_file: bytes, names: Mapping[str, str]) -> bytes:
    """Return a class file with other classes' names replaced (`a/b/C`), also in descriptors and signatures."""
    if not names:
        return class_file
    # In a descriptor the letter L is in front of a name, and other capitals for types may precede it.
    pattern = re.compile(rf"(?<![a-z0-9_/$])(?:{'|'.join(map(re.escape, names))})(?![\w/$])".encode())

    def new_name(match: re.Match[bytes]) -> bytes:
        return names[match[0].decode()].encode()

    *_, count = _HEAD.unpack_from(class_file)
    parts, at, number = [class_file[: _HEAD.size]], _HEAD.size, 1
    while number < count:
        tag = class_file[at]
        if tag == _UTF8:
            (size,) = _LENGTH.unpack_from(class_file, at + 1)
            text = pattern.sub(new_name, class_file[at + 3 : at + 3 + size])
            parts.append(bytes((tag,)) + _LENGTH.pack(len(text)) + text)
            at += 3 + size
        else:
            parts.append(class_file[at : at + 1 + _SIZES[tag]])
            at += 1 + _SIZES[tag]
        number += 2 if tag in _WIDE else 1
    return b"".join((*parts, class_file[at:]))


def _classes(jars: Iterable[Path]) -> dict[str, Path]:
    """Return Kafka's own classes by name, and the jar of each."""
    found = {}
    for jar in jars:
        with ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(_SUFFIX) and name.startswith(("org/apache/kafka/", "kafka/")):
                    found[name.removesuffix(_SUFFIX)] = jar
    return found


def _rewrite(jar: Path, names: Mapping[str, str]) -> None:
    with ZipFile(jar) as source:
        contents = {entry.filename: source.read(entry) for entry in source.infolist()}
    with ZipFile(jar, "w", ZIP_DEFLATED) as target:
        for name, data in contents.items():
            target.writestr(name, renamed(data, names) if name.endswith(_SUFFIX) else data)
