"""The requests that remove the effects of a successful request.

A controller may lack UnregisterBroker or DeleteTopics, or refuse them: then brokers stay, fenced, and topics stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mockraft.conformance.requests import Tree
from mockraft.wire import error_codes

Step = tuple[str, Tree]
_TOPIC, _SET, _DELETE = 2, 0, 1
_TIMEOUT_MS = 10_000


def undoing(api: str, request: Tree, answer: Tree) -> Iterator[Step]:
    """Return the requests that undo this one; none without an effect, or if it is removed with its topic."""
    make = _UNDOING.get(api)
    if make is not None and not request.get("validateOnly"):
        yield from make(request, answer)


def is_left(answer: Tree | None) -> bool:
    """Tell by the response to UnregisterBroker, None for no response, whether the broker is still registered."""
    return answer is None or answer["errorCode"] not in (error_codes.NONE, error_codes.BROKER_ID_NOT_REGISTERED)


def _topics(request: Tree, answer: Tree) -> Iterator[Step]:
    made = [topic["name"] for topic in answer["topics"] if not topic["errorCode"]]
    if made:
        yield "DeleteTopics", {"topics": [{"name": name} for name in made], "timeoutMs": _TIMEOUT_MS}


def _broker(request: Tree, answer: Tree) -> Iterator[Step]:
    if not answer["errorCode"]:
        yield "UnregisterBroker", {"brokerId": request["brokerId"]}


def _configs(request: Tree, answer: Tree) -> Iterator[Step]:
    for resource, response in zip(request.get("resources", ()), answer["responses"], strict=False):
        shared = not resource["resourceName"]
        keys = [config["name"] for config in resource.get("configs", ()) if config.get("configOperation", _SET) == _SET]
        if keys and not response["errorCode"] and not shared and resource["resourceType"] != _TOPIC:
            configs = [{"name": key, "configOperation": _DELETE, "value": None} for key in keys]
            yield "IncrementalAlterConfigs", {"resources": [{**resource, "configs": configs}]}


def _quotas(request: Tree, answer: Tree) -> Iterator[Step]:
    for entry in request.get("entries", ()):
        ops = [{"key": op["key"], "value": 0.0, "remove": True} for op in entry.get("ops", ())]
        yield "AlterClientQuotas", {"entries": [{**entry, "ops": ops}]}


def _scram(request: Tree, answer: Tree) -> Iterator[Step]:
    for each in request.get("upsertions", ()):
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
