"""What a request that succeeded leaves behind, and the request that takes it away again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mockraft.conformance.requests import Tree

Step = tuple[str, Tree]
_TOPIC, _SET, _DELETE = 2, 0, 1
_TIMEOUT_MS = 10_000


def undoing(api: str, asked: Tree, answer: Tree) -> Iterator[Step]:
    """The requests that undo this one; nothing for a request that changed nothing, or what goes with its topic."""
    make = _UNDOING.get(api)
    if make is not None and not asked.get("validateOnly"):
        yield from make(asked, answer)


def _topics(asked: Tree, answer: Tree) -> Iterator[Step]:
    made = [topic["name"] for topic in answer["topics"] if not topic["errorCode"]]
    if made:
        yield "DeleteTopics", {"topics": [{"name": name} for name in made], "timeoutMs": _TIMEOUT_MS}


def _broker(asked: Tree, answer: Tree) -> Iterator[Step]:
    if not answer["errorCode"]:
        yield "UnregisterBroker", {"brokerId": asked["brokerId"]}


def _configs(asked: Tree, answer: Tree) -> Iterator[Step]:
    for resource, told in zip(asked.get("resources", ()), answer["responses"], strict=False):
        shared = not resource["resourceName"]
        keys = [config["name"] for config in resource.get("configs", ()) if config.get("configOperation", _SET) == _SET]
        if keys and not told["errorCode"] and not shared and resource["resourceType"] != _TOPIC:
            configs = [{"name": key, "configOperation": _DELETE, "value": None} for key in keys]
            yield "IncrementalAlterConfigs", {"resources": [{**resource, "configs": configs}]}


def _quotas(asked: Tree, answer: Tree) -> Iterator[Step]:
    for entry in asked.get("entries", ()):
        ops = [{"key": op["key"], "value": 0.0, "remove": True} for op in entry.get("ops", ())]
        yield "AlterClientQuotas", {"entries": [{**entry, "ops": ops}]}


def _scram(asked: Tree, answer: Tree) -> Iterator[Step]:
    for each in asked.get("upsertions", ()):
        yield (
            "AlterUserScramCredentials",
            {"deletions": [{"name": each["name"], "mechanism": each["mechanism"]}], "upsertions": []},
        )


_UNDOING: dict[str, Callable[[Tree, Tree], Iterator[Step]]] = {
    "CreateTopics": _topics,
    "BrokerRegistration": _broker,
    "IncrementalAlterConfigs": _configs,
    "AlterConfigs": _configs,
    "AlterClientQuotas": _quotas,
    "AlterUserScramCredentials": _scram,
}
