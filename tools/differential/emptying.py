"""Waits until a controller serves what it wrote, and removes everything that a run created.

Kafka's controller looks tokens up, and its authorizer ACLs, in an image that follows the log (DelegationTokenPublisher,
AclPublisher), some time after the response. The next run starts empty, according to the side's own log.
"""

import time
from collections.abc import Callable, Iterable

from mockraft.conformance.requests import Tree, feature_ranges

from .names import NamedRecord
from .side import Side
from .steps import FuzzStep

EVERY_ACL: Tree = {
    **dict.fromkeys(("resourceTypeFilter", "patternTypeFilter", "operation", "permissionType"), 1),
    **dict.fromkeys(("resourceNameFilter", "principalFilter", "hostFilter")),
}
NOBODY = "User:owns-no-token"
"""This user may not renew a token: the error shows whether there is one, and nothing changes."""
NOT_FOUND = 62
PUBLISHED_S = 20
PUBLISHED_POLL_S = 0.005


def wait_until_published(side: Side, records: Iterable[NamedRecord]) -> None:
    """Wait until the side serves what these records changed; a lasting difference shows in later steps."""
    kinds = {record.kind for record in records}
    if kinds & {"DelegationTokenRecord", "RemoveDelegationTokenRecord"}:
        _wait(lambda: _tokens(side) == len(side.model.tokens))
    if kinds & {"AccessControlEntryRecord", "RemoveAccessControlEntryRecord"}:
        _wait(lambda: _acls(side) == len(side.model.acls))


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PUBLISHED_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(PUBLISHED_POLL_S)


def _tokens(side: Side) -> int:
    """Return how many of the tokens that were created since the beginning are found."""
    bodies: list[Tree] = [{"hmac": hmac, "renewPeriodMs": -1} for hmac in side.hmacs]
    answers = [side.answer(FuzzStep("RenewDelegationToken", 2, body, NOBODY)) for body in bodies]
    return sum(answer["errorCode"] != NOT_FOUND for answer in answers)


def _acls(side: Side) -> int:
    return sum(len(resource["acls"]) for resource in side.answer(FuzzStep("DescribeAcls", 3, EVERY_ACL))["resources"])


SET, DELETE = 0, 1
UPGRADE, UNSAFE_DOWNGRADE = 1, 3
TIMEOUT_MS = 60_000

EMPTY_S = 60
EMPTY_POLL_S = 0.05

Levels = dict[str, tuple[int, int]]
Configs = dict[tuple[int, str], dict[str, str]]


def empty(side: Side, supported: Levels, features: dict[str, int], settings: Configs) -> None:
    """Remove topics, brokers, quotas and credentials; reset `features` and configs (`settings`)."""
    deadline = time.monotonic() + EMPTY_S
    while left := _left_after(side, supported, features, settings):
        # A controller that resigned refuses everything until it leads again.
        if time.monotonic() > deadline:
            raise RuntimeError(f"{side.name} cannot be emptied of {', '.join(left)}")
        time.sleep(EMPTY_POLL_S)
    side.begin()


def _left_after(side: Side, supported: Levels, features: dict[str, int], settings: Configs) -> list[str]:
    model = side.model
    if topics := [{"name": name} for name in model.topics]:
        side.ask("DeleteTopics", {"topics": topics, "timeoutMs": TIMEOUT_MS}, 6)
    for broker_id in list(model.brokers):
        side.ask("UnregisterBroker", {"brokerId": broker_id}, 0)
    for node_id in model.controllers.keys() - {side.node_id}:
        listener = {"name": "CONTROLLER", "host": "host", "port": 9093, "securityProtocol": 0}
        tree: Tree = {"controllerId": node_id, "listeners": [listener], "features": feature_ranges(supported)}
        side.ask("ControllerRegistration", tree, 0)
    _restore_features(side, features)
    _restore_configs(side, settings)
    if entries := [_without(entity, keys) for entity, keys in model.quotas.values() if keys]:
        side.ask("AlterClientQuotas", {"entries": entries}, 1)
    for user, mechanism in sorted(model.credentials):
        side.ask("AlterUserScramCredentials", {"deletions": [{"name": user, "mechanism": mechanism}]}, 0)
    if model.acls:
        side.ask("DeleteAcls", {"filters": [EVERY_ACL]}, 3)
    wait_until_published(side, side.new_records())
    left = [*model.topics, *model.acls, *map(str, model.brokers), *(user for user, _ in model.credentials)]
    return left + [
        name for name in {*model.features, *features} if model.features.get(name, 0) != features.get(name, 0)
    ]


def _restore_features(side: Side, features: dict[str, int]) -> None:
    found = side.model.features
    for name in {*found, *features}:
        now, then = found.get(name, 0), features.get(name, 0)
        if now != then:
            kind = UPGRADE if then > now else UNSAFE_DOWNGRADE
            update = {"feature": name, "maxVersionLevel": then, "upgradeType": kind}
            side.ask("UpdateFeatures", {"featureUpdates": [update], "timeoutMs": TIMEOUT_MS}, 2)


def _restore_configs(side: Side, settings: Configs) -> None:
    side.new_records()
    resources: list[Tree] = []
    for kind, name in {**settings, **side.model.configs}:
        values, wanted = (configs.get((kind, name), {}) for configs in (side.model.configs, settings))
        changes = [{"name": key, "configOperation": DELETE, "value": None} for key in values if key not in wanted]
        changes += [
            {"name": key, "configOperation": SET, "value": value}
            for key, value in wanted.items()
            if values.get(key) != value
        ]
        if changes:
            resources.append({"resourceType": kind, "resourceName": name, "configs": changes})
    if resources:
        side.ask("IncrementalAlterConfigs", {"resources": resources}, 1)


def _without(entity: list[Tree], keys: set[str]) -> Tree:
    return {"entity": entity, "ops": [{"key": key, "value": 0.0, "remove": True} for key in sorted(keys)]}
