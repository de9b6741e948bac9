"""Removes everything that a run created, according to the side's own log, so that the next run starts empty."""

import time

from mockraft.conformance.fuzz.publication import EVERY_ACL, wait_until_published
from mockraft.conformance.fuzz.side import Side
from mockraft.conformance.requests import Tree, feature_ranges

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
