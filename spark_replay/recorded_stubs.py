"""Make stubs of recorded exchanges: the same request gets the recorded response again.

A stub matches the API, its version, the client id, and the request fields that stay the same in another run; epochs,
offsets, random ids and times are ignored (`regression.classes`). If the same request got different responses, they
become a scenario: each response leads to the next, and the last one stays. The result has the format of the stub file
of `mockraft serve --stubs`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.regression.captured import Captured
from mockraft.spark_replay.regression.classes import NOT_SENT, is_volatile
from mockraft.spark_replay.regression.send_order import read_exchange
from mockraft.wire import api_keys
from mockraft.wire.json_form import UNKNOWN_TAGS, Json, to_json
from mockraft.wire.message import Message
from mockraft.wire.redaction.masks import HIDDEN
from mockraft.wire.redaction.messages import masked, may_hold_secrets

STARTED = "Started"
SCOPES = ("version", "clientId")
NOT_RECORDED = {
    api_keys.ENVELOPE: "its response repeats the forwarded request's correlation id",
    **NOT_SENT,
    api_keys.SASL_HANDSHAKE: "stubs do not authenticate clients",
    api_keys.SASL_AUTHENTICATE: "stubs do not authenticate clients",
}
"""APIs for which no stubs are made, and why."""


class RecordedStubs(NamedTuple):
    """The stubs, as JSON, in the order of their first requests; counts of what was left out by (API, reason)."""

    stubs: list[dict[str, Json]]
    left_out: Counter[tuple[str, str]]


class MatchedFields(NamedTuple):
    """The names of the request fields to match (default: all that are not volatile), and of those to ignore."""

    only: Collection[str] = ()
    ignored: Collection[str] = ()


NOT_VOLATILE = MatchedFields()


def stubs_of(
    exchanges: Iterable[Captured],
    *,
    kept: Filter | None = None,
    scopes: Collection[str] = SCOPES,
    fields: MatchedFields = NOT_VOLATILE,
    repeats_as_scenarios: bool = True,
    show_secrets: bool = False,
) -> RecordedStubs:
    """Make stubs of exchanges.

    Args:
        exchanges: in the order of sending, as `read_exchanges` returns them.
        kept: which APIs to use.
        scopes: what a stub matches besides API and body: `version`, `clientId`.
        fields: which request fields a stub matches.
        repeats_as_scenarios: if False, keep only the last response to the same request.
        show_secrets: if False, secrets are not matched, and are asterisks in responses.
    """
    left_out: Counter[tuple[str, str]] = Counter()
    answers: dict[str, tuple[str, dict[str, Json], list[Json]]] = {}
    for exchange in exchanges:
        read = NOT_RECORDED.get(exchange.api_key) or read_exchange(exchange, kept or Filter())
        name = api_keys.name(exchange.api_key)
        if isinstance(read, str):
            left_out[name, read] += 1
            continue
        header, body, response = read
        match: dict[str, Json] = {"api": name}
        if "version" in scopes:
            match["version"] = header.api_version
        if "clientId" in scopes and header.client_id is not None:
            match["clientId"] = header.client_id
        if not show_secrets:
            body, response = masked(body), _with_asterisks(response, header.api_version)
        tree = to_json(body, header.api_version)
        if where := dict(fields_to_match(tree, *fields)):
            match["where"] = where
        answer = _without_unknown_tags(to_json(response, header.api_version))
        answers.setdefault(json.dumps(match, sort_keys=True), (name, match, []))[2].append(answer)
    stubs: list[dict[str, Json]] = []
    for name, match, given in answers.values():
        stubs += _stubs(f"recorded {name} {len(stubs) + 1}", match, given if repeats_as_scenarios else given[-1:])
    return RecordedStubs(stubs, left_out)


def _stubs(name: str, match: dict[str, Json], answers: list[Json]) -> Iterator[dict[str, Json]]:
    """Return one stub, or the steps of a scenario; equal responses at the end are one step."""
    while len(answers) > 1 and answers[-1] == answers[-2]:
        answers = answers[:-1]
    for number, answer in enumerate(answers, start=1):
        stub: dict[str, Json] = {"name": name, "match": match}
        if len(answers) > 1:
            following = {"then": f"answer {number + 1}"} if number < len(answers) else {}
            stub["scenario"] = {"name": name, "requires": STARTED if number == 1 else f"answer {number}", **following}
        yield stub | {"actions": [{"answer": answer}]}


def fields_to_match(
    tree: Json, only: Collection[str] = (), ignored: Collection[str] = (), path: str = "", name: str = ""
) -> Iterator[tuple[str, Json]]:
    """Yield path and value of the request fields that stay the same in another run.

    Null and empty values match too much and are left out, hidden secrets match nothing.
    """
    if isinstance(tree, dict):
        for field, value in tree.items():
            if field == UNKNOWN_TAGS or field in ignored or (is_volatile(field) and field not in only):
                continue
            yield from fields_to_match(value, only, ignored, f"{path}.{field}" if path else field, field)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from fields_to_match(value, only, ignored, f"{path}[{index}]", name)
    elif tree not in (None, "", HIDDEN) and (not only or name in only):
        yield path, tree


def _with_asterisks(response: Message, version: int) -> Message:
    """Return a response that a stub can send, with asterisks for secrets."""
    if not may_hold_secrets(type(response)):
        return response
    return type(response).read(masked(response).write(version), version)


def _without_unknown_tags(tree: Json) -> Json:
    if isinstance(tree, dict):
        return {field: _without_unknown_tags(value) for field, value in tree.items() if field != UNKNOWN_TAGS}
    return [_without_unknown_tags(each) for each in tree] if isinstance(tree, list) else tree
