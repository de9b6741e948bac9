"""Observed differences between two releases: the same request of a case, and the answers of Kafka's own controllers.

`baselines/exchanges.json` has the exchanges of each case that some releases answer differently, once for all releases
that agree: the runs that `python -m tools.baselines` made, also of cases that do not apply there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from mockraft.conformance import baseline
from mockraft.conformance.requests import Tree
from mockraft.conformance.verdicts import Run
from mockraft.releases import Release
from mockraft.wire import error_codes

OBSERVED = "observed"
_WIDTH = 200
_ABSENT = "—"
_RECORDS = "records"
_TOLD_ELSEWHERE = {"ApiVersions": {"apiKeys", "supportedFeatures", "finalizedFeatures"}, "CreateTopics": {"configs"}}
"""Fields that repeat the tables of APIs, features and configuration keys."""
_POSITIONS = {"FeatureLevelRecord.featureLevel", "ProducerIdsRecord.nextProducerId"}
_MESSAGE = "errorMessage"
_NUMBER = re.compile(r"(?<!<epoch )(?<!<id )\d+")
"""A number in a text, but not in the name of an epoch or id: another one means that the controller gave a new one."""


class ChangedField(NamedTuple):
    """A field of an answer or a record, and its two values."""

    field: str
    before: str
    since: str


class Observed(NamedTuple):
    """A request of a case (or the one before the records) and what the two controllers answered differently."""

    case: str
    api: str
    request: str
    differences: tuple[ChangedField, ...]


Variants = Mapping[str, Sequence[Tree]]


def variants(runs: Mapping[str, Run]) -> dict[str, list[Tree]]:
    """Return the cases whose exchanges differ between neighbours among `runs` (by release name, oldest first)."""
    found: dict[str, list[Tree]] = {}
    names = list(dict.fromkeys(each.name for run in runs.values() for each in run.verdicts))
    by_name = {of: {each.name: each.exchanges for each in run.verdicts} for of, run in runs.items()}
    for name in names:
        of_releases = {of: _kept_part(by_name[of].get(name, [])) for of in runs}
        if any(list(_of_case(name, old, new)) for old, new in pairwise(of_releases.values())):
            kept: list[Tree] = []
            for of, exchanges in of_releases.items():
                same = next((each for each in kept if each["exchanges"] == exchanges), None)
                if same is None:
                    kept.append({"releases": [of], "exchanges": exchanges})
                else:
                    same["releases"].append(of)
            found[name] = kept
    return found


def _kept_part(exchanges: Sequence[Tree]) -> list[Tree]:
    return [_without(each, _TOLD_ELSEWHERE.get(_api(each), set())) for each in exchanges]  # type: ignore[misc]


def observed(old: Release, new: Release) -> list[Observed]:
    """Return what the controllers of two releases answered differently, each difference once."""
    found: dict[object, Observed] = {}
    for name, kept in _kept().items():
        sides = [_exchanges(kept, of.line) for of in (old, new)]
        for each in _of_case(name, *sides):
            found.setdefault(_identity(each), each)
    return list(found.values())


def _identity(found: Observed) -> object:
    """Return what makes a difference new: the text of a refusal tells it, whatever the request."""
    if any(_MESSAGE in each.field for each in found.differences):
        return found.api, tuple((each.field, _NUMBER.sub("0", each.since)) for each in found.differences)
    return found[1:]


def as_text(found: Sequence[Observed], old: str, new: str) -> Iterator[str]:
    """Yield the lines of a terminal."""
    width = max(len(old), len(new))
    yield f"Observed on Kafka's own controllers ({len(found)})"
    for each in found:
        yield f"  {each.case}"
        yield f"    {each.api} {cut(each.request)}"
        for field, before, since in each.differences:
            yield f"      {field}"
            yield f"        {old:{width}}  {cut(named(field, before))}"
            yield f"        {new:{width}}  {cut(named(field, since))}"


def as_trees(found: Sequence[Observed]) -> list[Tree]:
    """Return plain data for JSON: `before` and `since` map a field to its value, None if it is not there."""
    return [
        {
            "kind": OBSERVED,
            "what": each.case,
            "request": f"{each.api} {each.request}",
            "before": {field: _or_none(before) for field, before, _ in each.differences},
            "since": {field: _or_none(since) for field, _, since in each.differences},
        }
        for each in found
    ]


def _or_none(value: str) -> str | None:
    return None if value == _ABSENT else value


def named(field: str, value: str) -> str:
    """Return a value, an error code with Kafka's name: `35 UNSUPPORTED_VERSION`."""
    return f"{value} {error_codes.name(int(value))}" if field.endswith("rrorCode") and value != _ABSENT else value


def cut(text: str) -> str:
    """Return a text, shortened to what a line takes."""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


@cache
def _kept() -> Variants:
    kept: Variants = json.loads(baseline.EXCHANGES.read_text(encoding="utf-8"))
    return kept


def _exchanges(kept: Sequence[Tree], release: str) -> list[Tree]:
    return next((each["exchanges"] for each in kept if release in each["releases"]), [])


def _of_case(name: str, old: Sequence[Tree], new: Sequence[Tree]) -> Iterator[Observed]:
    """Yield the first difference of the exchanges that both have, up to the first pair of other requests."""
    api, request = "", ""
    for before, since in zip(old, new, strict=False):
        if _api(before) != _api(since):
            return
        if "api" in since:
            api, request = since["api"], _line(since["request"])
            keys = _TOLD_ELSEWHERE.get(_api(since), set())
            same_version = before["api"] == since["api"]
            pairs = _differing(_without(before["answer"], keys), _without(since["answer"], keys), "", same_version)
        else:
            pairs = _records(before[_RECORDS], since[_RECORDS])
        if differences := tuple(ChangedField(*each) for each in pairs):
            yield Observed(name, api, request, differences)
            return


def _api(exchange: Tree) -> str:
    return str(exchange.get("api", "")).partition(" ")[0]


def _records(old: Sequence[Tree], new: Sequence[Tree]) -> Iterator[tuple[str, str, str]]:
    kinds = [[each["record"] for each in of] for of in (old, new)]
    if kinds[0] != kinds[1]:
        before, since = (", ".join(of) or "none" for of in kinds)
        yield _RECORDS, before, since
        return
    for mine, theirs in zip(old, new, strict=True):
        same = mine["version"] == theirs["version"]
        yield from _differing(mine["fields"], theirs["fields"], mine["record"], same)


def _differing(old: object, new: object, path: str, same_version: bool) -> Iterator[tuple[str, str, str]]:
    """Yield the fields that differ; those that only one version of a message has are no difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys() if same_version else old.keys() & new.keys()):
            inside = f"{path}.{key}" if path else key
            yield from _differing(old.get(key, _ABSENT), new.get(key, _ABSENT), inside, same_version)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        if sorted(map(repr, old)) == sorted(map(repr, new)):
            return  # Kafka answers in the order of a hash map.
        for index, (before, since) in enumerate(zip(old, new, strict=True)):
            yield from _differing(before, since, f"{path}[{index}]", same_version)
    elif old != new and not _differs_by_circumstance(path, old, new):
        yield path, _line(old), _line(new)


def _differs_by_circumstance(path: str, old: object, new: object) -> bool:
    """Tell whether values differ by the level of the run or by what other cases left."""
    if path in _POSITIONS:
        return True
    is_text = isinstance(old, str) and isinstance(new, str)
    return is_text and _NUMBER.sub("0", str(old)) == _NUMBER.sub("0", str(new))


def _without(tree: object, keys: set[str]) -> object:
    if isinstance(tree, dict):
        return {key: _without(value, keys) for key, value in tree.items() if key not in keys}
    return [_without(each, keys) for each in tree] if isinstance(tree, list) else tree


def _line(tree: object) -> str:
    return tree if isinstance(tree, str) else json.dumps(tree, ensure_ascii=False)
