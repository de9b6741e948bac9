"""Kafka's message specs as data: the files in `mockraft.schemas_json`, parsed on first use.

The generated classes know how to read and write; `json_form` and `schema_reading` look up here what they do not
carry: Kafka's own spelling of a name, the versions in which a field may be null or is tagged.
No code is shared with `codegen.parse`, on purpose: tests compare the generated code with this second implementation.
The format of the files is described in Kafka's clients/src/main/resources/common/message/README.md.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from mockraft.wire import spec_files
from mockraft.wire.api_keys import RELEASE
from mockraft.wire.errors import WireError
from mockraft.wire.names import attribute

_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
_OPEN_END = 32767


class Versions(NamedTuple):
    """An inclusive range of versions; empty if low > high."""

    low: int
    high: int

    def covers(self, version: int) -> bool:
        """Return True if `version` is in the range."""
        return self.low <= version <= self.high

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """Parse Kafka's notation: "3", "1-4", "2+" or "none"."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), _OPEN_END)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))


NO_VERSIONS = Versions(0, -1)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a struct. `kind` is the type (of one element, for an array); `struct` is set for structs.

    `entity_type` is what it names in Kafka's words (`topicName`), empty for nothing.
    """

    name: str
    json_name: str
    attribute: str
    kind: str
    is_array: bool
    struct: "StructSpec | None"
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    flexible: Versions
    ignorable: bool
    about: str
    entity_type: str


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A struct's name and its fields, in wire order."""

    name: str
    fields: tuple[FieldSpec, ...]

    def untagged(self, version: int) -> Iterator[FieldSpec]:
        """Return the untagged fields of `version`."""
        return (f for f in self.fields if f.versions.covers(version) and not f.tagged.covers(version))

    def tagged(self, version: int) -> dict[int, FieldSpec]:
        """Return the tagged fields of `version`, by tag."""
        return {f.tag: f for f in self.fields if f.versions.covers(version) and f.tagged.covers(version)}


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """One file: a message, a record or a header. `api_key` is -1 if there is none. Compared by identity."""

    name: str
    api_key: int
    kind: str
    valid: Versions
    flexible: Versions
    root: StructSpec


@cache
def schema(name: str) -> Schema:
    """Return the spec called `name` (such as "BrokerHeartbeatRequest"). Raises WireError if this release has none."""
    texts = spec_files.shipped(RELEASE)
    # One file is not called as its message is (ZkMigrationRecord.json holds ZkMigrationStateRecord).
    likely = [text for folder in spec_files.FOLDERS if (text := texts.get(f"{folder}/{name}.json"))]
    for text in [*likely, *texts.values()]:
        if f'"{name}"' in text and (found := parse(load(text))).name == name:
            return found
    raise WireError(f"Kafka {RELEASE} has no message called {name!r}")


def schema_of(cls: type) -> Schema:
    """Return the spec of a message class or a subclass: `SCHEMA` of a module made at run time, or the release's."""
    generated = next(each for each in cls.__mro__ if "api_key" in vars(each))
    own: Schema | None = getattr(sys.modules[generated.__module__], "SCHEMA", None)
    return schema(generated.__name__) if own is None else own


@cache
def names() -> tuple[str, ...]:
    """Return every spec that has at least one valid version, sorted by folder and file name."""
    found = (parse(load(text)) for text in spec_files.shipped(RELEASE).values())
    return tuple(spec.name for spec in found if spec.valid != NO_VERSIONS)


def load(text: str) -> dict[str, Any]:
    """Parse the JSON of a spec file without its `//` comments, which JSON parsers refuse."""
    tree: dict[str, Any] = json.loads(_STRING_OR_COMMENT.sub(lambda m: m[1] or "", text))
    return tree


def parse(tree: dict[str, Any]) -> Schema:
    """Convert the JSON tree of a spec to a Schema."""
    flexible = Versions.parse(tree.get("flexibleVersions", "none"))
    common = {s["name"]: s["fields"] for s in tree.get("commonStructs", ())}
    known: dict[str, StructSpec] = {}
    root = _struct(tree["name"], tree.get("fields", ()), flexible, common, known)
    valid = Versions.parse(tree["validVersions"])
    return Schema(tree["name"], int(tree.get("apiKey", -1)), tree["type"], valid, flexible, root)


def _struct(
    name: str, fields: Any, flexible: Versions, common: dict[str, Any], known: dict[str, StructSpec]
) -> StructSpec:
    if name not in known:
        known[name] = StructSpec(name, tuple(_field(f, flexible, common, known) for f in fields))
    return known[name]


def _field(tree: dict[str, Any], flexible: Versions, common: dict[str, Any], known: dict[str, StructSpec]) -> FieldSpec:
    name, kind = tree["name"], tree["type"]
    is_array = kind.startswith("[]")
    element = kind.removeprefix("[]")
    struct = None
    if element[0].isupper():
        struct = _struct(element, tree.get("fields") or common.get(element, ()), flexible, common, known)
    tagged = tree.get("taggedVersions", "none")
    return FieldSpec(
        name=name,
        json_name=name[0].lower() + name[1:],
        attribute=attribute(name),
        kind=element,
        is_array=is_array,
        struct=struct,
        # A field that is only ever tagged may leave its versions out.
        versions=Versions.parse(tree.get("versions", tagged)),
        nullable=Versions.parse(tree.get("nullableVersions", "none")),
        tagged=Versions.parse(tagged),
        tag=int(tree.get("tag", -1)),
        flexible=Versions.parse(tree["flexibleVersions"]) if "flexibleVersions" in tree else flexible,
        ignorable=tree.get("ignorable", False),
        about=tree.get("about", ""),
        entity_type=tree.get("entityType", ""),
    )
