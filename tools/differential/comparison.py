"""Comparison of two outcomes, in everything that both controllers promise."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from mockraft.conformance.requests import Tree

from .model import Model
from .names import NamedRecord
from .side import RequestEffect
from .steps import FuzzStep

_HASHED = {
    "PartitionChangeRecord": ("topicId", "partitionId"),
    "RemoveTopicRecord": ("topicId",),
    "RemoveAccessControlEntryRecord": ("id",),
    "ConfigRecord": ("resourceType", "resourceName"),
}
"""Records from a hash map whose order differs between processes, and the field that identifies them."""


IMAGE = "image"


class Divergence(NamedTuple):
    """A difference after a step: a path into response or records, or the IMAGE, and the two values there."""

    api: str
    path: str
    ours: object
    theirs: object

    @property
    def kind(self) -> str:
        """The kind of the difference, kept while shrinking: the API, and the path without its indexes."""
        return f"{self.api} {''.join(each for each in self.path if not each.isdigit())}"


def difference(step: FuzzStep, one: RequestEffect, other: RequestEffect, model: Model) -> Divergence | None:
    """Return the first difference between the outcomes of the step."""
    return _first(step.api, *(_normal(step, outcome, model) for outcome in (one, other)))


def image_difference(one: Model, other: Model) -> Divergence | None:
    """Return the first difference between what two logs describe."""
    return _first(IMAGE, *(_sorted(asdict(model)) for model in (one, other)))


def _first(api: str, one: object, other: object) -> Divergence | None:
    return next((Divergence(api, path.lstrip("."), *values) for path, *values in _unlike(one, other, "")), None)


def _normal(step: FuzzStep, outcome: RequestEffect, model: Model) -> Tree:
    answer: Tree = _sorted(outcome.answer)
    if step.api == "ApiVersions":
        answer.pop("apiKeys", None)  # which APIs there are is known before: only those that both have are sent
    if step.body.get("validateOnly"):
        for topic in answer.get("topics", []):
            topic["topicId"] = "of no topic"
    records = [_shape(each, model) if step.is_chance else list(each) for each in _records(step, outcome.records)]
    return {"answer": answer, "records": records}


def _sorted(tree: Any) -> Any:
    """Sort lists of objects: Kafka takes many of them from hash maps."""
    if isinstance(tree, dict):
        return {key: _sorted(value) for key, value in tree.items()}
    if isinstance(tree, list):
        values = [_sorted(value) for value in tree]
        return sorted(values, key=json.dumps) if values and isinstance(values[0], dict) else values
    return tree


def _records(step: FuzzStep, records: list[NamedRecord]) -> list[NamedRecord]:
    """Sort neighbouring records whose order each controller draws at random."""
    ordered: list[NamedRecord] = []
    for kind, group in groupby(records, lambda each: each.kind):
        run = list(group)
        ordered += sorted(run, key=partial(_place, step)) if kind in _HASHED else run
    return ordered


def _place(step: FuzzStep, record: NamedRecord) -> list[str]:
    place = [f"{record.fields[key]:>9}" for key in _HASHED[record.kind]]
    if step.api == "AlterConfigs" and record.fields["value"] is None:
        # What is not named any more comes from a table whose size depends on all that it ever held.
        place.append(record.fields["name"])
    return place


def _shape(record: NamedRecord, model: Model) -> list[object]:
    name, version, body = record
    if name != "PartitionRecord":
        return list(record)
    active = [
        broker_id for broker_id, each in model.brokers.items() if not each.fenced and not each.in_controlled_shutdown
    ]
    is_sound = body["isr"] == [each for each in body["replicas"] if each in active] and body["leader"] == body["isr"][0]
    is_sound = is_sound and len({*body["replicas"]}) == len(body["replicas"])
    return [name, version, body["topicId"], body["partitionId"], len(body["replicas"]), is_sound]


def _unlike(one: object, other: object, path: str) -> Iterator[tuple[str, object, object]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in one or key not in other:
                yield f"{path}.{key}", one.get(key, "not there"), other.get(key, "not there")
            else:
                yield from _unlike(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _unlike(left, right, f"{path}.{index}")
    elif one != other or type(one) is not type(other):
        yield path, one, other
