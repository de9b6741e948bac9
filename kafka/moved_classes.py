"""Test classes of one Kafka release, made to link with a newer one that has moved some of the classes they use.

A class that the newer release has under the same name in another package is renamed in the constants of the test
classes, as a recompilation with corrected imports would do. A class that it has no more is added from the older one.
Calls of a method that has another type now go to a static method that converts its value (`CHANGED`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping
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
_CLASS, _METHOD, _INTERFACE_METHOD, _NAME_AND_TYPE = b"\x07", b"\x0a", b"\x0b", b"\x0c"
_INVOKE_STATIC, _INVOKE_INTERFACE = b"\xb8", b"\xb9"
_NOP: Final = b"\0"

CHANGED: Final = {
    ("org/apache/kafka/coordinator/group/GroupCoordinator", "groupMetadataTopicConfigs", "()Ljava/util/Properties;"): (
        "kafka/server/OlderCalls"
    )
}
"""Methods of interfaces by class, name and type, as tests call them, and the class with the static method for them."""


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
        _rewrite(jar, lambda class_file: redirected(renamed(class_file, moved)))
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

    constants, end = _constants(class_file)
    replaced = (_text(pattern.sub(new_name, each[3:])) if each[0] == _UTF8 else each for each in constants.values())
    return b"".join((class_file[: _HEAD.size], *replaced, class_file[end:]))


def redirected(class_file: bytes) -> bytes:
    """Return a class file that calls static methods in place of those that have changed, with the object as argument.

    Both calls take five bytes of code: `invokeinterface` with its count, or `invokestatic` and two `nop`.
    """
    for (owner, name, kind), instead in CHANGED.items():
        if name.encode() not in class_file:
            continue
        constants, end = _constants(class_file)
        numbers = {constant: _LENGTH.pack(number) for number, constant in constants.items()}
        of_class = numbers.get(_CLASS + numbers.get(_text(owner.encode()), b""))
        described = numbers.get(
            _NAME_AND_TYPE + numbers.get(_text(name.encode()), b"") + numbers.get(_text(kind.encode()), b"")
        )
        called = numbers.get(_INTERFACE_METHOD + (of_class or b"") + (described or b""))
        if called is None:
            continue
        *head, count = _HEAD.unpack_from(class_file)
        at = [_LENGTH.pack(count + each) for each in range(5)]
        added = (
            _text(instead.encode()),
            _CLASS + at[0],
            _text(kind.replace("(", f"(L{owner};").encode()),
            _NAME_AND_TYPE + numbers[_text(name.encode())] + at[2],
            _METHOD + at[1] + at[3],
        )
        call = _INVOKE_INTERFACE + called + b"\x01" + _NOP
        body = class_file[end:].replace(call, _INVOKE_STATIC + at[4] + _NOP * 2)
        class_file = b"".join((_HEAD.pack(*head, count + len(added)), *constants.values(), *added, body))
    return class_file


def _constants(class_file: bytes) -> tuple[dict[int, bytes], int]:
    """Return the constants by number, with their tags, and the offset behind them."""
    *_, count = _HEAD.unpack_from(class_file)
    constants, at, number = {}, _HEAD.size, 1
    while number < count:
        tag = class_file[at]
        size = 3 + _LENGTH.unpack_from(class_file, at + 1)[0] if tag == _UTF8 else 1 + _SIZES[tag]
        constants[number] = class_file[at : at + size]
        at += size
        number += 2 if tag in _WIDE else 1
    return constants, at


def _text(text: bytes) -> bytes:
    return bytes((_UTF8,)) + _LENGTH.pack(len(text)) + text


def _classes(jars: Iterable[Path]) -> dict[str, Path]:
    """Return Kafka's own classes by name, and the jar of each."""
    found = {}
    for jar in jars:
        with ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(_SUFFIX) and name.startswith(("org/apache/kafka/", "kafka/")):
                    found[name.removesuffix(_SUFFIX)] = jar
    return found


def _rewrite(jar: Path, change: Callable[[bytes], bytes]) -> None:
    with ZipFile(jar) as source:
        contents = {entry.filename: source.read(entry) for entry in source.infolist()}
    with ZipFile(jar, "w", ZIP_DEFLATED) as target:
        for name, data in contents.items():
            target.writestr(name, change(data) if name.endswith(_SUFFIX) else data)
