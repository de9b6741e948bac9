"""Kafka's schema files (JSON with `//` comment lines) as specs. Kafka's classes: `MessageSpec`, `FieldSpec`."""

from __future__ import annotations

import hashlib
import math

from mockraft.codegen.spec import BLOCKS, FIXED, Default, FieldSpec, MessageSpec, SpecError, StructSpec
from mockraft.codegen.versions import ALL, NONE, Versions
from mockraft.files.trees import TreeError, json_tree
from mockraft.wire.json_form import Json
from mockraft.wire.names import attribute

_RANGES = {
    "int8": (-(1 << 7), 1 << 7),
    "int16": (-(1 << 15), 1 << 15),
    "uint16": (0, 1 << 16),
    "int32": (-(1 << 31), 1 << 31),
    "uint32": (0, 1 << 32),
    "int64": (-(1 << 63), 1 << 63),
}

_FIELD_KEYS = {
    "about",
    "default",
    "entityType",
    "fields",
    "flexibleVersions",
    "ignorable",
    "mapKey",
    "name",
    "nullableVersions",
    "tag",
    "taggedVersions",
    "type",
    "versions",
    "zeroCopy",
}

_MESSAGE_KEYS = {
    "apiKey",
    "commonStructs",
    "deprecatedVersions",
    "fields",
    "flexibleVersions",
    "latestVersionUnstable",
    "listeners",
    "name",
    "type",
    "validVersions",
}


def parse(text: str, source: str) -> MessageSpec:
    """Read one schema file; `source` is its name in the generated file and in SpecErrors, which name the field too."""
    tree = parse_json(text, source)
    return _FileParser(source, hashlib.sha256(text.encode()).hexdigest()).message(tree)


def parse_json(text: str, source: str) -> dict[str, Json]:
    """Parse the JSON object in a schema file's text, without its `//` lines. Raises SpecError if there is none."""
    without_comments = "\n".join("" if line.lstrip().startswith("//") else line for line in text.splitlines())
    try:
        tree = json_tree(without_comments, keys_repeat=True)  # as some of Kafka's own
    except TreeError as error:
        raise SpecError(f"{source}: {error}") from None
    if not isinstance(tree, dict):
        raise SpecError(f"{source}: the file holds no JSON object")
    return tree


class _FileParser:
    """Reads one file, collecting its structs."""

    def __init__(self, source: str, sha256: str) -> None:
        self._source = source
        self._sha256 = sha256
        self._structs: dict[str, StructSpec] = {}

    def message(self, tree: dict[str, Json]) -> MessageSpec:
        self._only(tree, _MESSAGE_KEYS, "the message")
        name = self._text(tree, "name", "the message")
        valid = self._versions(tree, "validVersions", name)
        flexible = self._versions(tree, "flexibleVersions", name, NONE)
        for common in self._children(tree, "commonStructs", name):
            common_name = self._text(common, "name", "commonStructs")
            self._struct(common_name, common, self._versions(common, "versions", common_name))
        fields = tuple(self._field(name, child) for child in self._children(tree, "fields", name))
        return MessageSpec(
            name=name,
            kind=self._text(tree, "type", name),
            api_key=self._integer(tree, "apiKey", name),
            valid_versions=valid,
            flexible_versions=flexible,
            body=StructSpec(name, fields, valid),
            structs=self._structs,
            latest_version_unstable=bool(tree.get("latestVersionUnstable", False)),
            source=self._source,
            sha256=self._sha256,
        )

    def _field(self, owner: str, tree: dict[str, Json]) -> FieldSpec:
        name = self._text(tree, "name", owner)
        where = f"{owner}.{name}"
        self._only(tree, _FIELD_KEYS, where)
        type_name = self._text(tree, "type", where)
        versions = self._versions(tree, "versions", where)
        nullable = self._versions(tree, "nullableVersions", where, NONE)
        about = str(tree.get("about", ""))
        element = type_name.removeprefix("[]")
        if "fields" in tree:
            if element in FIXED or element in BLOCKS:
                raise SpecError(f"{self._source}: {where}: a {element} has no fields")
            self._struct(element, tree, versions, about)
        return FieldSpec(
            name=name,
            snake=attribute(name),
            type=type_name,
            versions=versions,
            default=self._default(where, type_name, tree.get("default"), nullable),
            nullable_versions=nullable,
            tagged_versions=self._versions(tree, "taggedVersions", where, NONE),
            tag=self._integer(tree, "tag", where),
            ignorable=bool(tree.get("ignorable", False)),
            flexible_versions=self._versions(tree, "flexibleVersions", where, ALL),
            about=about,
        )

    def _struct(self, name: str, tree: dict[str, Json], versions: Versions, about: str = "") -> None:
        if name in self._structs:
            raise SpecError(f"{self._source}: the struct {name} is described twice")
        fields = tuple(self._field(name, child) for child in self._children(tree, "fields", name))
        self._structs[name] = StructSpec(name, fields, versions, about or str(tree.get("about", "")))

    def _default(self, where: str, type_name: str, given: object, nullable: Versions) -> Default:
        text = "" if given is None else str(given)
        if text == "null":
            if nullable.empty:
                raise SpecError(f"{self._source}: {where}: the default is null, which no version allows")
            return None
        if type_name == "string":
            return text
        try:
            return self._value(type_name, text)
        except ValueError as error:
            raise SpecError(f"{self._source}: {where}: the default {text!r} is no {type_name}: {error}") from None

    def _value(self, type_name: str, text: str) -> Default:
        if type_name in ("uuid", "bytes", "records") or type_name not in FIXED:
            if text:
                raise ValueError("only null can be given")
            if type_name == "uuid":
                return bytes(16)
            return b"" if type_name in BLOCKS else ()
        if type_name == "bool":
            if text.lower() not in ("", "true", "false"):
                raise ValueError("want true or false")
            return text.lower() == "true"
        if type_name == "float64":
            if not math.isfinite(float(text or "0")):
                raise ValueError("want a finite number")
            return float(text or "0")
        number = int(text or "0", 0)
        low, end = _RANGES[type_name]
        if not low <= number < end:
            raise ValueError("out of range")
        return number

    def _only(self, tree: dict[str, Json], known: set[str], where: str) -> None:
        for key in tree:
            if key not in known:
                raise SpecError(f"{self._source}: {where}: unknown key {key!r}")

    def _children(self, tree: dict[str, Json], key: str, where: str) -> list[dict[str, Json]]:
        found = tree.get(key, [])
        children = [child for child in found if isinstance(child, dict)] if isinstance(found, list) else []
        if not isinstance(found, list) or len(children) < len(found):
            raise SpecError(f"{self._source}: {where}: {key!r} is not a list of objects")
        return children

    def _integer(self, tree: dict[str, Json], key: str, where: str) -> int:
        """Return a number, which may be a string in the JSON; -1 if it is missing."""
        value = tree.get(key, -1)
        try:
            return int(str(value))
        except ValueError:
            raise SpecError(f"{self._source}: {where}: {key}: {value!r} is not a number") from None

    def _text(self, tree: dict[str, Json], key: str, where: str) -> str:
        value = tree.get(key)
        if not isinstance(value, str):
            raise SpecError(f"{self._source}: {where}: {key!r} is missing or no string")
        return value

    def _versions(self, tree: dict[str, Json], key: str, where: str, default: Versions | None = None) -> Versions:
        if default is not None and key not in tree:
            return default
        try:
            return Versions.parse(self._text(tree, key, where))
        except SpecError:
            raise
        except ValueError as error:
            raise SpecError(f"{self._source}: {where}: {key}: {error}") from None
