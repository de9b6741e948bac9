"""Stubs in the words of Kafka's own fault proxy, KafkaProtocolFaultProxy (KAFKA-21074).

A rule is a method with its arguments, `forClient`, which is a part of the client id, and a trigger:

    {"injectError": ["BROKER_HEARTBEAT", "NOT_CONTROLLER"], "once": true}
    {"delayOn": ["FETCH", 500], "forClient": "raft", "times": 2}
    {"disconnectOn": "ALTER_PARTITION", "everyTime": true}
    {"blackholeClient": "raft-client-1"}

They are read as stubs, and returned as such. `disconnectOn` loses the controller's answer, as the proxy does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.triggers import TRIGGERS

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree

T = TypeVar("T")

ARGUMENTS = {
    "injectError": ("apiKey", "error"),
    "delayOn": ("apiKey", "ms"),
    "disconnectOn": ("apiKey",),
    "blackholeClient": ("clientId",),
}
"""The proxy's methods and their parameters."""

_TRIGGER = (*TRIGGERS, "seed")
_OF_STUBS = ("match", "trigger", "actions")


def is_rule(tree: Mapping[str, Json]) -> bool:
    """Return True if a stub's JSON is a rule of the fault proxy."""
    return not ARGUMENTS.keys().isdisjoint(tree)


def read_rule(tree: Mapping[str, Json], read: Callable[[Tree], T]) -> T:
    """Read a rule as the stub that it means. Raise StubError that names the rule's field."""
    method = next(name for name in ARGUMENTS if name in tree)
    beside = [name for name in (*ARGUMENTS, *_OF_STUBS) if name in tree and name != method]
    if beside:
        raise StubError(f"a rule by {method} has no {beside[0]} beside it", beside[0])
    rest = {name: value for name, value in tree.items() if name not in (method, "forClient", *_TRIGGER)}
    try:
        return read({**rest, **_stub(method, tree)})
    except StubError as wrong:
        raise StubError(wrong.what, _field(wrong.field, method)) from None


def _stub(method: str, tree: Mapping[str, Json]) -> Tree:
    given = tree[method]
    names, values = ARGUMENTS[method], given if isinstance(given, list) else [given]
    if len(values) != len(names):
        raise StubError(f"expected [{', '.join(names)}], got {given!r}", "actions")
    match: Tree = {}
    actions: list[Json]
    client = tree.get("forClient")
    if method == "blackholeClient":
        client, actions = values[0], ["blackhole"]
    else:
        match["api"] = values[0]
        actions = ["passThrough", "drop", method] if method == "disconnectOn" else [{method: values[1]}]
    if client is not None:
        match["clientId"] = {"contains": client}
    trigger = {name: tree[name] for name in _TRIGGER if name in tree}
    return {"match": match, "actions": actions, "trigger": trigger or None}


def _field(field: str, method: str) -> str:
    """Return the rule's field for a field of the stub that was made of it."""
    first, _, rest = field.partition(".")
    if first == "trigger":
        return rest or field
    if first == "match" and rest.startswith("clientId") and method != "blackholeClient":
        return "forClient"
    return method if first.startswith(("match", "actions")) else field
