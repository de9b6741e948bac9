"""Methods that two releases of Kafka have otherwise, as javap prints them.

What a compiler may change by itself is left out: offsets, places in the constant pool, packages, and the numbers of
lambdas, whose code counts as that of the method that they are in. So a class that only moved to another package has no
changed methods, and between patch releases of one line what is left was changed in the sources.
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mockraft.kafka.jars import KafkaUnavailableError

CONTROLLER = re.compile(
    r"org/apache/kafka/common/protocol/MessageUtil|org/apache/kafka/controller/\w+"
    r"|org/apache/kafka/raft/(KafkaRaftClient|LeaderState|QuorumState|RaftUtil|internals/\w+)"
    r"|kafka/server/ControllerApis|kafka/network/RequestChannel"
)
"""Outer classes that decide how a controller answers."""

MESSAGES = re.compile(r"org/apache/kafka/common/(message|metadata)/\w+")
"""Generated readers and writers."""

_JAVAP_S = 120
_CLASS = re.compile(r"^(?:[\w ]*\s)?(?:class|interface|enum|record) ([\w.$]+)")
_MEMBER = re.compile(r"^  (\S.*);$")
_CODE = re.compile(r"^\s+\d+: (\w+)\s*(.*)$")
_LAMBDA = re.compile(r"(?:lambda|\$anonfun)\$(\w+?)\$\d+(?:\$adapted)?")
_NUMBERED = re.compile(r"\$\d+(\$adapted)?$")
_PACKAGES = re.compile(r"\b(?:[a-z]\w*[./])+(?=[\w$])")
_TYPE = re.compile(r"L(?:\w+[/$])*(\w+);")
_OUTER = re.compile(r"(?<![\w$])(?:\w+\$)+(?=[A-Za-z])")
_PLACE = re.compile(r"#\d+")
_JUMPS = re.compile(r"if\w*|goto|jsr|lookupswitch|tableswitch")


class MethodChange(NamedTuple):
    """A method, or a constant with its value, that is `new`, `gone` or `changed` in the newer release."""

    of_class: str
    name: str
    change: str


Entries = Mapping[str, tuple[Path, int]]
"""Classes of a release by path in its jar: the jar, and the checksum of the bytes."""


def classes(folder: Path, chosen: re.Pattern[str]) -> Entries:
    """Return the chosen classes in Kafka's jars of a folder, with their inner classes."""
    found = {}
    for jar in sorted([*folder.glob("kafka-*.jar"), *folder.glob("kafka_*.jar")]):
        with zipfile.ZipFile(jar) as archive:
            for each in archive.infolist():
                name, _, ending = each.filename.rpartition(".")
                if ending == "class" and chosen.fullmatch(name.partition("$")[0]):
                    found[name] = (jar, each.CRC)
    return found


def changed_classes(old: Entries, new: Entries) -> list[str]:
    """Return the classes whose bytes differ, or that one release lacks."""
    return sorted(
        name for name in old.keys() | new.keys() if old.get(name, (None, -1))[1] != new.get(name, (None, -1))[1]
    )


def method_changes(old: Path, new: Path) -> list[MethodChange]:
    """Return what differs in the controller's classes of two folders of jars. Raises KafkaUnavailableError."""
    entries = [classes(folder, CONTROLLER) for folder in (old, new)]
    names = changed_classes(*entries)
    before, since = (_members([name for name in names if name in each], each) for each in entries)
    found = []
    for of_class, name in sorted(before.keys() | since.keys()):
        sides = [each.get((of_class, name)) for each in (before, since)]
        if sides[0] != sides[1]:
            change = "new" if sides[0] is None else "gone" if sides[1] is None else "changed"
            found.append(MethodChange(of_class, name, change))
    return found


def _members(names: list[str], entries: Entries) -> dict[tuple[str, str], list[str]]:
    """Return the code of each method, and the constants, of some classes by class and name."""
    code: dict[tuple[str, str], list[str]] = defaultdict(list)
    if not names:
        return code
    jars = ":".join(sorted({str(entries[name][0]) for name in names}))
    command = ["javap", "-p", "-c", "-constants", "-cp", jars, *(name.replace("/", ".") for name in names)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_JAVAP_S, check=False)
    except FileNotFoundError:
        raise KafkaUnavailableError("javap was not found: methods are compared by the javap of a JDK") from None
    except subprocess.TimeoutExpired:
        raise KafkaUnavailableError(f"javap did not end within {_JAVAP_S} s") from None
    if done.returncode:
        raise KafkaUnavailableError(f"javap: {done.stderr.strip()[-300:]}")
    for of_class, name, line in _lines(done.stdout.splitlines()):
        code[of_class, name].append(line)
    return {key: sorted(lines) if key[1].startswith("(") else lines for key, lines in code.items()}


def _lines(printed: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield class, method and a normalized line of what javap prints."""
    of_class = name = ""
    for line in printed:
        if match := _CLASS.match(line):
            of_class = match[1].rpartition(".")[2].partition("$")[0]
            name = ""
        elif match := _MEMBER.match(line):
            name = _member_name(match[1], of_class)
            if name:
                yield of_class, name, ""
        elif name and (match := _CODE.match(line)):
            yield of_class, name, _instruction(match[1].removesuffix("_w"), match[2])


def _member_name(declared: str, of_class: str) -> str:
    """Return the name of a method, or of a constant with its value; an empty one for other fields."""
    head, parenthesis, _ = declared.partition("(")
    if " = " in head:
        return head.rpartition(" = ")[0].rpartition(" ")[2] + " = " + head.rpartition(" = ")[2]
    if declared == "static {}":
        return "(static)"
    if not parenthesis:
        return ""
    name = head.rpartition(" ")[2]
    folded = _LAMBDA.fullmatch(name)
    name = _NUMBERED.sub("", folded[1] if folded else name.rpartition(".")[2])
    if name.startswith(("access$", "$")):
        return ""
    return "(constructor)" if name.partition("$")[0] == of_class else name


def _instruction(name: str, operand: str) -> str:
    """Return an instruction without what a compiler may choose."""
    if _JUMPS.fullmatch(name):
        return name
    _, comment, text = operand.partition("//")
    if not comment:
        return f"{name} {operand.strip()}"
    if text.startswith(" String "):
        return f"{name}{text}"
    text = _OUTER.sub("", _LAMBDA.sub(r"lambda.\1", _PACKAGES.sub("", _TYPE.sub(r"\1;", text))))
    return f"{name}{_PLACE.sub('#', text)}"
