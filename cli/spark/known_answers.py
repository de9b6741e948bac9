"""Error codes that Kafka's own controllers of two releases answered differently, for the verdict of a replay."""

from __future__ import annotations

from collections.abc import Iterator

from mockraft.conformance.observed import observed
from mockraft.conformance.suite import all_cases
from mockraft.releases import Release
from mockraft.spark_replay.regression.diff import any_element
from mockraft.spark_replay.regression.verdict import KnownAnswer


def known_answers(old: Release, new: Release) -> Iterator[KnownAnswer]:
    """Yield the error codes that Kafka's own controllers of two releases answered differently."""
    sources = {each.name: each.source for each in all_cases()}
    for each in observed(old, new):
        fields = {field.field: field for field in each.differences}
        for field in each.differences:
            if field.field.endswith("errorCode"):
                text = fields.get(field.field.removesuffix("Code") + "Message", field)
                message = text.before if text.since == "null" else text.since
                why = f"{each.case} ({sources.get(each.case, 'conformance')})"
                api = each.api.partition(" ")[0]
                path = any_element(field.field)
                yield KnownAnswer(api, path, field.before, field.since, message, why)
