"""Rules: whether each field of every response (and request) is compared, renamed, masked or unordered.

They are generated from the message schemas. A rule is named `Api:path`, with array elements as `[]`:
`Fetch:responses[].partitions[].highWatermark`. A TOML file overrides them:

[[rule]]
api = "BrokerHeartbeat"      # or "*"
path = "isFenced"            # array elements as []; * is a wildcard
class = "ignored"
versions = "0-1"             # optional, as in Kafka's schemas: 1, 0-2, 3+
why = "fencing is late on a busy machine"
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from mockraft.files.trees import read_tree
from mockraft.spark_replay.regression.classes import ANY_ORDER, CLASSES, COMPARED, class_of
from mockraft.wire import api_keys, messages
from mockraft.wire.names import did_you_mean, similar_names
from mockraft.wire.schema_files import FieldSpec, StructSpec, Versions, schema_of

_IDS = ("nodeId", "brokerId", "replicaId", "partitionIndex", "partitionId", "index", "id")
_KEYS = (*((name,) for name in ("apiKey", "topicName", "name", "topic", *_IDS)), ("resourceType", "resourceName"))
"""Fields that identify the elements of an array, whatever their order."""

_SETS = frozenset(
    (
        *("apiKeys", "supportedFeatures", "finalizedFeatures", "nodeEndpoints", "brokers", "listeners"),
        *("topics", "responses", "partitions", "directories"),
    )
)
"""Arrays that Kafka's controller makes from hash maps: their order is random."""


class RuleError(ValueError):
    """Raised for an invalid override: an unknown class, API or field. The message suggests valid ones."""


class Rule(NamedTuple):
    """The comparison rule of one field. `why` is empty for a generated rule."""

    api: str
    path: str
    versions: Versions
    kind: str
    is_request: bool = False
    why: str = ""

    @property
    def name(self) -> str:
        """`Api:path`."""
        return f"{self.api}:{self.path}"

    @property
    def excuses(self) -> bool:
        """True if it excuses differences."""
        return self.kind != COMPARED


class Override(NamedTuple):
    """An entry of a rules file: fields whose path matches (`*` is a wildcard) have this class.

    `api` is a name or `*`.
    """

    api: str
    path: str
    kind: str
    versions: Versions = Versions(0, 32767)
    why: str = ""

    def covers(self, rule: Rule) -> bool:
        """Return True if it applies to the field of `rule`."""
        if rule.is_request or self.api not in ("*", rule.api):
            return False
        return _pattern(self.path).fullmatch(rule.path) is not None


class RuleNode(NamedTuple):
    """One field in one version, compiled: its rule, its fields by name, and the identifying fields of its elements."""

    rule: Rule
    fields: dict[str, RuleNode]
    keys: tuple[tuple[str, ...], ...]


class Rules:
    """All rules of a run. Raises RuleError if an override matches no field."""

    def __init__(self, overrides: Sequence[Override] = ()) -> None:
        self.overrides = tuple(overrides)
        self._roots: dict[tuple[int, int, bool], RuleNode] = {}
        for override in self.overrides:
            _verify(override)

    def response(self, api_key: int, version: int) -> RuleNode:
        """Return the fields of a response at a version. Raises WireError for an unknown API key."""
        return self._root(api_key, version, is_request=False)

    def request(self, api_key: int, version: int) -> RuleNode:
        """Return the fields of a request at a version."""
        return self._root(api_key, version, is_request=True)

    def __iter__(self) -> Iterator[Rule]:
        """Iterate over the rules of every field of every response."""
        for api_key in sorted(api_keys.NAMES):
            yield from (self._overridden(rule) for rule in _rules(api_key))

    def _root(self, api_key: int, version: int, *, is_request: bool) -> RuleNode:
        key = api_key, version, is_request
        root = self._roots.get(key)
        if root is None:
            found = schema_of(messages.request(api_key) if is_request else messages.response(api_key))
            top = Rule(api_keys.name(api_key), "", found.valid, COMPARED, is_request)
            root = self._roots[key] = self._node(found.root, top, "", api_key, version)
        return root

    def _node(self, struct: StructSpec | None, rule: Rule, parent: str, api_key: int, version: int) -> RuleNode:
        fields = {}
        for field in struct.fields if struct else ():
            if field.versions.covers(version):
                inner = _rule(field, rule, parent, api_key)
                if not rule.is_request:
                    inner = self._overridden(inner, version)
                fields[field.json_name] = self._node(field.struct, inner, field.json_name, api_key, version)
        keys = tuple(names for names in _KEYS if all(name in fields for name in names))
        return RuleNode(rule, fields, keys)

    def _overridden(self, rule: Rule, version: int | None = None) -> Rule:
        for override in reversed(self.overrides):
            if override.covers(rule) and (version is None or override.versions.covers(version)):
                return rule._replace(kind=override.kind, why=override.why)
        return rule


@cache
def _rules(api_key: int) -> tuple[Rule, ...]:
    found = schema_of(messages.response(api_key))
    top = Rule(api_keys.name(api_key), "", found.valid, COMPARED)
    return tuple(_fields(found.root, top, "", api_key, found.valid))


def _fields(struct: StructSpec, above: Rule, parent: str, api_key: int, valid: Versions) -> Iterator[Rule]:
    for field in struct.fields:
        rule = _rule(field, above, parent, api_key)
        rule = rule._replace(
            versions=Versions(max(field.versions.low, valid.low), min(field.versions.high, valid.high))
        )
        yield rule
        if field.struct is not None:
            yield from _fields(field.struct, rule, field.json_name, api_key, valid)


def _rule(field: FieldSpec, above: Rule, parent: str, api_key: int) -> Rule:
    name = f"{field.json_name}[]" if field.is_array else field.json_name
    path = f"{above.path}.{name}" if above.path else name
    kind = class_of(field, parent, api_key, is_request=above.is_request)
    if field.is_array and field.struct is not None and field.json_name in _SETS:
        kind = ANY_ORDER
    return Rule(above.api, path, field.versions, kind, above.is_request)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, path.split("*"))))


def _verify(override: Override) -> None:
    names = {name: key for key, name in api_keys.NAMES.items()}
    if override.api != "*" and override.api not in names:
        raise RuleError(f"there is no API {override.api!r}{_meant(override.api, names)}")
    keys = names.values() if override.api == "*" else [names[override.api]]
    rules = [rule for key in keys for rule in _rules(key)]
    if not any(override.covers(rule) for rule in rules):
        where = "any response" if override.api == "*" else f"{override.api}'s response"
        raise RuleError(f"no field of {where} is {override.path!r}{_meant(override.path, {r.path for r in rules})}")


def _meant(text: str, known: Iterable[str]) -> str:
    near = similar_names(text, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""


_ENTRY_KEYS = {"api", "path", "class", "versions", "why"}


def read_rules(path: str | PathLike[str]) -> Rules:
    """Return the generated rules with a file's overrides; if several match a field, the last one counts.

    Raises GivenFileError for a file that is no TOML, and RuleError for an invalid entry.
    """
    return rules_of(read_tree(Path(path), ".toml").tree)


def rules_of(tree: Mapping[str, object]) -> Rules:
    """Return the rules with the overrides of a parsed file."""
    unknown = set(tree) - {"rule"}
    if unknown:
        raise RuleError(f"a rules file contains only [[rule]] tables, not {', '.join(sorted(unknown))}")
    entries = tree.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise RuleError("rules are an array of tables: [[rule]], not [rule]")
    overrides = []
    for number, entry in enumerate(entries, start=1):
        try:
            overrides.append(_override(entry))
            Rules(overrides[-1:])
        except RuleError as error:
            raise RuleError(f"rule {number}: {error}") from None
    return Rules(overrides)


def _override(entry: Mapping[str, object]) -> Override:
    if unknown := set(entry) - _ENTRY_KEYS:
        raise RuleError(f"has no key {', '.join(sorted(unknown))}; its keys are {', '.join(sorted(_ENTRY_KEYS))}")
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    for key in entry.keys() - texts.keys():
        raise RuleError(f"{key} must be a string, not {entry[key]!r}")
    for key in ("api", "path", "class"):
        if not texts.get(key):
            raise RuleError(f"{key} is missing")
    if texts["class"] not in CLASSES:
        raise RuleError(f"there is no class {texts['class']!r}; {did_you_mean(texts['class'], sorted(CLASSES))}")
    try:
        versions = Versions.parse(texts.get("versions", "0+"))
    except ValueError:
        raise RuleError(f"versions must be like 1, 0-2 or 3+, not {texts['versions']!r}") from None
    return Override(texts["api"], texts["path"], texts["class"], versions, texts.get("why", ""))


def write_rules(rules: Iterable[Rule]) -> Iterator[str]:
    """Yield the lines of a rules file equivalent to `rules`."""
    api = None
    for rule in rules:
        if rule.api != api:
            api = rule.api
            yield f"\n# {api}"
        low, high = rule.versions
        versions = f"{low}" if low == high else f"{low}-{high}"
        yield "[[rule]]"
        yield f'api = "{rule.api}"'
        yield f'path = "{rule.path}"'
        yield f'versions = "{versions}"'
        yield f'class = "{rule.kind}"' + ("  # elements are identified by name or number" * (rule.kind == ANY_ORDER))
        if rule.why:
            yield "why = " + json.dumps(rule.why, ensure_ascii=False).replace("\x7f", "\\u007f")
