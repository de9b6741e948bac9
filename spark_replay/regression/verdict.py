"""The verdict of a replay: what changed for clients, what the release is known to change, and what was masked.

Differences are grouped by API, field and both values, in the order of their first example, since the first is often
the cause of the others. A difference that the tables of two releases have (`releases.changes`, and the answers that
Kafka's own controllers gave) is known: it is listed apart with its source, and does not count.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mockraft.releases import SUPPORTED, Release, release
from mockraft.releases.changes import NONE, Change, fact_changes
from mockraft.spark_replay.regression.classes import COMPARED, REASONS
from mockraft.spark_replay.regression.diff import CHANGED, EXTRA, INDEX_OR_KEY, MISSING, ORDER, any_element
from mockraft.spark_replay.regression.rules import Rule
from mockraft.wire import api_keys, error_codes
from mockraft.wire.json_form import Json
from mockraft.wire.printable import printable_line

ELEMENT = rf"(?<!apiKeys)(?<!supportedFeatures)(?<!finalizedFeatures)(?<!configs){INDEX_OR_KEY}"
"""An index or key in a path, but not the names of APIs, features and configs: these tell what changed.

A regular expression of Python and of Java.
"""
_NAMED = re.compile(r"(apiKeys|supportedFeatures|configs)\[([^\]]+)\](?:\.(\w+))?$")
_KINDS = {"apiKeys": "api", "supportedFeatures": "feature", "configs": "config"}
_RANGE_ENDS = {"minVersion": 0, "maxVersion": -1}
_LEVEL = re.compile(r"(supported|finalized)Features\[metadata\.version\]\.max")
VARYING_WORD = r"\S*[\d.:'_<\"\\]\S*"
"""A word of an error message that depends on the request: a number, a name, a value."""
_NEWER_VERSION_IS_READ = (api_keys.API_VERSIONS, "errorCode", CHANGED, str(error_codes.UNSUPPORTED_VERSION), "0")
"""A client's first ApiVersions request of a version that only the newer release has."""
_VALUE_MAX = 200
_SOURCE = re.compile(r"(?:KIP|KAFKA)-\d+")


class Group(NamedTuple):
    """Equal differences: path (`ELEMENT` as `[]`), kind, both values as JSON (None: absent), count, first example.

    `first` has the columns of REPLAY_RESULTS that identify the exchange; `texts` are the error messages beside an error
    code, without varying words (`words_of`).
    """

    api_key: int
    path: str
    kind: str
    expected: str | None
    actual: str | None
    occurrences: int
    first: Mapping[str, object]
    texts: frozenset[str] = frozenset()

    @property
    def api(self) -> str:
        """Name of the API."""
        return api_name(self.api_key)

    @property
    def field(self) -> str:
        """The path, with an API's name for its key in ApiVersions."""
        key = re.match(r"apiKeys\[(\d+)\]", self.path)
        return f"apiKeys[{api_keys.name(int(key[1]))}]{self.path[key.end() :]}" if key else self.path

    def as_tree(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        first = self.first
        when = datetime.fromtimestamp(int(str(first["request_ts_ns"])) / 1e9, UTC)
        return {
            "api": self.api,
            "path": self.field,
            "kind": self.kind,
            "expected": value_of(self.expected),
            "actual": value_of(self.actual),
            "count": self.occurrences,
            "first": {
                "session": str(first["session"]),
                "exchange": int(str(first["number"])),
                "frame": int(str(first["request_frame_no"])),
                "connection": "{client}:{client_port} → {server}:{server_port}".format_map(first),
                "correlationId": int(str(first["correlation_id"])),
                "time": when.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            },
        }


class KnownAnswer(NamedTuple):
    """An error code that the controllers of two releases answered differently; `path` has `[]` for any element.

    `text` is the message of the code, or of the older one if the newer release accepts the request.
    """

    api: str
    path: str
    before: str
    since: str
    text: str
    why: str


ReportRow = Mapping[str, Any]
"""The report of a replay, or a row of it (`Group.as_tree`), as plain data of JSON."""
KnownAnswers = Callable[[Release, Release], Iterable[KnownAnswer]]


class KnownChanges:
    """The tables of releases, asked for a difference. `pairs` are the releases of capture and target."""

    def __init__(self, pairs: Iterable[tuple[Release, Release]], answers: KnownAnswers = lambda _, __: ()) -> None:
        self._facts: dict[tuple[str, str], list[tuple[Change, str]]] = defaultdict(list)
        self._answers: dict[tuple[str, str, str | None, str | None], dict[str, str]] = defaultdict(dict)
        for old, new in pairs:
            for each in fact_changes(old, new):
                name = each.what.partition("`")[2].rstrip("`") or each.what
                self._facts[each.kind, name].append((each, _sources(each, old, new)))
            for answer in answers(old, new):
                self._answers[answer[:4]].setdefault(words_of(answer.text), answer.why)

    def why(self, group: Group) -> str | None:
        """Return the entry of a table that has this difference; None if none has it."""
        named = _NAMED.search(group.field)
        if group[:5] == _NEWER_VERSION_IS_READ:
            named = _NAMED.search("apiKeys[ApiVersions].maxVersion")
        if named is not None:
            for fact, source in self._facts[_KINDS[named[1]], named[2]]:
                if group[:5] == _NEWER_VERSION_IS_READ or _is_of(fact, named[3], group):
                    return f"{fact.what.replace('`', '')}: {fact.before} → {fact.since}{source}"
        api, path = group.api, any_element(group.path)
        if api == "Envelope":
            api, _, path = path.partition(".")
        known = self._answers.get((api, path, group.expected, group.actual), {})
        if not group.texts or not group.texts <= known.keys():
            return None
        return "; ".join(sorted({known[text] for text in group.texts}))


def api_name(api_key: int) -> str:
    """Return the name of an API; `?` below 0, for a response whose request is not known."""
    return api_keys.name(api_key) if api_key >= 0 else "?"


def words_of(text: str) -> str:
    """Return an error message without the words that depend on the request."""
    return re.sub(VARYING_WORD, "…", text)


def _is_of(fact: Change, part: str | None, group: Group) -> bool:
    """Return True if a difference is the one of a table: the element or the value of both releases."""
    if part is None:
        return (fact.before, group.kind) == (NONE, EXTRA) or (fact.since, group.kind) == (NONE, MISSING)
    values = group.expected, group.actual
    if group.kind != CHANGED or None in values:
        return False
    sides = (fact.before, fact.since)
    if part in _RANGE_ENDS:
        return all(side.split(" to ")[_RANGE_ENDS[part]] == value for side, value in zip(sides, values, strict=True))
    return all(f"default {value_of(value)}" in side for side, value in zip(sides, values, strict=True))


def _sources(fact: Change, old: Release, new: Release) -> str:
    """Return the KIPs that the newer specification of an API names, and the older one does not."""
    found: list[set[str]] = [set(), set()]
    for names, of in zip(found, (old, new), strict=True):
        for path, text in of.specs.items():
            if fact.kind == "api" and path.rpartition("/")[2] in (
                f"{fact.what}Request.json",
                f"{fact.what}Response.json",
            ):
                names.update(_SOURCE.findall(text))
    return f" ({', '.join(sorted(found[1] - found[0]))})" if found[1] - found[0] else ""


def releases_of(groups: Iterable[Group]) -> list[tuple[Release, Release]]:
    """Return the releases of capture and target where ApiVersions shows that they differ."""
    newest = {str(max(each.metadata_versions)): each for each in map(release, SUPPORTED)}
    found = {}
    for each in groups:
        if each.api_key == api_keys.API_VERSIONS and (level := _LEVEL.match(each.path)) and level[1] == "supported":
            old, new = newest.get(str(each.expected)), newest.get(str(each.actual))
            if old is not None and new is not None:
                found[old.name, new.name] = old, new
    return list(found.values())


def notes_of(groups: Iterable[Group]) -> list[str]:
    """Return hints about the target that explain many differences at once."""
    names = {str(level): each.name for of in SUPPORTED for level, each in release(of).metadata_versions.items()}
    found = []
    for each in groups:
        if each.api_key == api_keys.API_VERSIONS and (level := _LEVEL.match(each.path)) and level[1] == "finalized":
            before, live = (names.get(str(value), str(value)) for value in (each.expected, each.actual))
            found.append(
                f"the target's metadata.version is {live}, the captured one's {before}: a captured broker that does "
                f"not support it is refused, and so is what it sends later. Format the target with --release-version "
                f"{before} (mockraft serve --metadata-version {before}) to see only what the release changes"
            )
    return found


def masked(fired: Mapping[str, int], rules: Iterable[Rule]) -> list[dict[str, Json]]:
    """Return the masked differences by reason, the most frequent first; `fired` counts them by rule."""
    by_name = {rule.name: rule for rule in rules}
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for name, count in fired.items():
        if (rule := by_name.get(name)) is not None:
            found[rule.kind, rule.why or REASONS.get(rule.kind, "")][name] = count
    rows: list[dict[str, Json]] = [
        {
            "class": "error code" if kind == COMPARED else kind,
            "why": why,
            "count": sum(counts.values()),
            "fields": sorted(counts, key=counts.__getitem__)[::-1],
        }
        for (kind, why), counts in found.items()
    ]
    return sorted(rows, key=lambda row: -int(str(row["count"])))


def change_text(row: ReportRow) -> str:
    """Return the values of a row of `Group.as_tree` before and after: `0 NONE → 35 UNSUPPORTED_VERSION`."""
    before, after = (_value_text(row["path"], row[side]) for side in ("expected", "actual"))
    if row["kind"] == ORDER:
        return f"order {before} → {after}"
    return f"{'absent' if row['kind'] == EXTRA else before} → {'absent' if row['kind'] == MISSING else after}"


def _value_text(path: str, value: Json) -> str:
    if path.endswith("errorCode") and isinstance(value, int):
        return f"{value} {error_codes.name(value)}"
    if isinstance(value, dict) and {"minVersion", "maxVersion"} <= value.keys():
        return f"{value['minVersion']} to {value['maxVersion']}"
    if isinstance(value, dict) and "configs[" in path:
        value = value.get("value")
    return printable_line(value if isinstance(value, str) and value else json.dumps(value), _VALUE_MAX)


def first_text(row: ReportRow) -> str:
    """Return where the first example of a row of `Group.as_tree` is in the capture."""
    first = row["first"]
    place = f"#{first['exchange']} of {first['session']}"
    if "frame" not in first:  # `mockraft replay` has one file, and numbers its exchanges alone
        return place
    return (
        f"{place}: request {first['frame']} of {first['connection']}, "
        f"correlation id {first['correlationId']}, {first['time']}"
    )


def value_of(text: str | None) -> Json:
    """Return the value of a JSON text, or the text of one that was cut."""
    try:
        value: Json = None if text is None else json.loads(text)
        return value
    except ValueError:
        return text
