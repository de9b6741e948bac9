"""Requests that are not sent: the controllers are known to differ, or Kafka's controller would not survive them.

Each rule names its entry in `known_differences.toml`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from mockraft.conformance.requests import Tree

from .model import Model
from .steps import FuzzStep

MANY = 1_000
_NUMBER = re.compile(r"-?\d{1,9}")
_PROTOCOLS = range(4)
_RESOURCE_TYPES = (2, 4, 8, 16, 32)

Predicate = Callable[[Tree, Model], bool]


class Known(NamedTuple):
    """A rule: the entry in the list, its APIs, and a predicate on a request's body in a world."""

    entry: str
    apis: frozenset[str]
    covers: Predicate


KNOWN: list[Known] = []
"""Rules for requests to leave out. Empty entry: no difference, but the fuzz could not go on or compare."""


def _known(entry: str, apis: str) -> Callable[[Predicate], Predicate]:
    def register(covers: Predicate) -> Predicate:
        KNOWN.append(Known(entry, frozenset(apis.split()), covers))
        return covers

    return register


def is_known(step: FuzzStep, model: Model) -> bool:
    """Return True if the step, or its cleanup, is left out."""
    if step.is_chance and any(not each.fenced and each.in_controlled_shutdown for each in model.brokers.values()):
        return True  # whether it is refused depends on whether such a broker is drawn
    return any(
        each.api in known.apis and known.covers(each.body, model) for each in (step, *step.cleanup) for known in KNOWN
    )


def breaks(model: Model) -> bool:
    """Return True in a world in which Kafka's controller resigns sooner or later ("last-known-leader")."""
    partitions = (partition for topic in model.topics.values() for partition in topic.values())
    return any(not {*partition.last_known_elr} <= {*partition.replicas} for partition in partitions)


@_known("never-resigns", "BrokerRegistration ControllerRegistration")
def _has_odd_listener(body: Tree, _: Model) -> bool:
    return any(
        not each["host"].strip() or not each["port"] or each["securityProtocol"] not in _PROTOCOLS
        for each in body["listeners"]
    )


@_known("unnamed-listener", "BrokerRegistration")
def _has_unnamed_listener(body: Tree, _: Model) -> bool:
    return any(not each["name"] for each in body["listeners"])


@_known("never-resigns", "IncrementalAlterConfigs")
def _has_odd_operation(body: Tree, _: Model) -> bool:
    return any(
        config["configOperation"] not in range(4) or (config["configOperation"] > 1 and config["value"] is None)
        for each in body["resources"]
        for config in each["configs"]
    )


@_known("never-resigns", "AlterPartition")
def _has_odd_recovery(body: Tree, _: Model) -> bool:
    return any(each["leaderRecoveryState"] not in (0, 1) for topic in body["topics"] for each in topic["partitions"])


@_known("min-isr-text", "IncrementalAlterConfigs AlterConfigs CreateTopics")
def _sets_min_isr_to_no_number(body: Tree, _: Model) -> bool:
    return any(not _NUMBER.fullmatch("1" if value is None else value) for value in _min_isrs(body))


def _min_isrs(body: Tree) -> list[str | None]:
    return [
        config["value"]
        for each in [*body.get("resources", []), *body.get("topics", [])]
        for config in each["configs"]
        if config["name"] == "min.insync.replicas"
    ]


@_known("clear-elr-index", "IncrementalAlterConfigs")
def _clears_elr(body: Tree, model: Model) -> bool:
    return bool(_min_isrs(body)) and _keeps_elr(model)


@_known("clear-elr-index", "AlterConfigs")
def _drops_configs(_: Tree, model: Model) -> bool:
    # What AlterConfigs does not name is dropped, so perhaps min.insync.replicas.
    return _keeps_elr(model)


def _keeps_elr(model: Model) -> bool:
    return any(partition.elr for topic in model.topics.values() for partition in topic.values())


@_known("unanswered-requests", "AlterConfigs")
def _has_twins_of_no_type(body: Tree, _: Model) -> bool:
    names = [each["resourceName"] for each in body["resources"] if each["resourceType"] not in _RESOURCE_TYPES]
    return len({*names}) < len(names)


@_known("empty-isr-deletion", "DeleteTopics")
def _deletes_an_empty_isr(body: Tree, model: Model) -> bool:
    states = body.get("topics") or []
    texts = [*body.get("topicNames", ()), *(each["name"] for each in states), *(each["topicId"] for each in states)]
    names = {text.removeprefix("$topic:") for text in texts if text}
    return any(not partition.isr for name in names for partition in model.topics.get(name, {}).values())


@_known("oversized-create-partitions", "CreatePartitions")
def _adds_too_many(body: Tree, _: Model) -> bool:
    return any(each["count"] > MANY for each in body["topics"])


@_known("last-known-leader", "AlterPartitionReassignments")
def _moves_what_has_no_leader(body: Tree, model: Model) -> bool:
    places = [(topic["name"], each["partitionIndex"]) for topic in body["topics"] for each in topic["partitions"]]
    partitions = [model.topics.get(name, {}).get(number) for name, number in places]
    return any(partition and (partition.leader == -1 or partition.last_known_elr) for partition in partitions)


@_known("config-documentation", "DescribeConfigs")
def _asks_for_documentation(body: Tree, _: Model) -> bool:
    return bool(body.get("includeDocumentation"))


@_known("broker-loggers", "DescribeConfigs")
def _asks_for_loggers(body: Tree, _: Model) -> bool:
    return any(each["resourceType"] == 8 for each in body["resources"])


@_known("", "DescribeConfigs")
def _asks_for_all_of_a_node(body: Tree, _: Model) -> bool:
    # A controller's own properties are not the other's.
    return any(
        each["resourceType"] == 4 and each["resourceName"] and not each.get("configurationKeys")
        for each in body["resources"]
    )


@_known("host-names-in-quotas", "AlterClientQuotas")
def _names_a_host(body: Tree, _: Model) -> bool:
    return any(
        part["entityType"] == "ip" and part["entityName"] and part["entityName"][0].isalpha()
        for each in body["entries"]
        for part in each["entity"]
    )


@_known("", "AlterClientQuotas")
def _limits_mutations(body: Tree, _: Model) -> bool:
    return any(operation["key"] == "controller_mutation_rate" for each in body["entries"] for operation in each["ops"])


@_known("unanswered-requests", "DescribeUserScramCredentials")
def _asks_for_all_users(body: Tree, _: Model) -> bool:
    return not body["users"]


@_known("", "UpdateFeatures")
def _moves_the_cluster(body: Tree, _: Model) -> bool:
    # These levels do not come back, so the world would not be the next episode's.
    return not body.get("validateOnly") and any(
        each["feature"] in {"metadata.version", "kraft.version"} for each in body["featureUpdates"]
    )
