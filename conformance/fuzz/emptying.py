"""Removes everything that a run created, according to the side's own log, so that the next run starts empty."""

import time

from mockraft.conformance.fuzz.side import Side
from mockraft.conformance.requests import Tree
from mockraft.wire.messages import alter_client_quotas_request as quotas
from mockraft.wire.messages import alter_user_scram_credentials_request as scram
from mockraft.wire.messages import incremental_alter_configs_request as configs
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

SET, DELETE = 0, 1
ANY = 1
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
    if names := list(model.topics):
        states = [DeleteTopicState(name=name) for name in names]
        side.request(DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS), 6)
    for broker_id in list(model.brokers):
        side.request(UnregisterBrokerRequest(broker_id=broker_id), 0)
    for node_id in model.controllers - {side.node_id}:
        side.request(_registration(node_id, supported), 0)
    _restore_features(side, features)
    _restore_configs(side, settings)
    if entries := [_without(entity, keys) for entity, keys in model.quotas.values() if keys]:
        side.request(quotas.AlterClientQuotasRequest(entries=entries), 1)
    for user, mechanism in sorted(model.credentials):
        deletion = scram.ScramCredentialDeletion(name=user, mechanism=mechanism)
        side.request(scram.AlterUserScramCredentialsRequest(deletions=[deletion]), 0)
    everything = DeleteAclsFilter(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY,
        resource_name_filter=None, principal_filter=None, host_filter=None,
    )  # fmt: skip
    if model.acls:
        side.request(DeleteAclsRequest(filters=[everything]), 3)
    side.new_records()
    left = [*model.topics, *model.acls, *map(str, model.brokers), *(user for user, _ in model.credentials)]
    return left + [
        name for name in {*model.features, *features} if model.features.get(name, 0) != features.get(name, 0)
    ]


def _registration(node_id: int, supported: Levels) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=node_id,
        listeners=[Listener(name="CONTROLLER", host="host", port=9093, security_protocol=0)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported.items()
        ],
    )


def _restore_features(side: Side, features: dict[str, int]) -> None:
    found = side.model.features
    for name in {*found, *features}:
        now, then = found.get(name, 0), features.get(name, 0)
        if now != then:
            kind = UPGRADE if then > now else UNSAFE_DOWNGRADE
            update = FeatureUpdateKey(feature=name, max_version_level=then, upgrade_type=kind)
            side.request(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=TIMEOUT_MS), 2)


def _restore_configs(side: Side, settings: Configs) -> None:
    side.new_records()
    resources = []
    for (kind, name), values in side.model.configs.items():
        wanted = settings.get((kind, name), {})
        changes = [
            configs.AlterableConfig(name=key, config_operation=DELETE, value=None)
            for key in values
            if key not in wanted
        ]
        changes += [
            configs.AlterableConfig(name=key, config_operation=SET, value=value)
            for key, value in wanted.items()
            if values.get(key) != value
        ]
        if changes:
            resources.append(configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes))
    if resources:
        side.request(configs.IncrementalAlterConfigsRequest(resources=resources), 1)


def _without(entity: list[Tree], keys: set[str]) -> quotas.EntryData:
    return quotas.EntryData(
        entity=[quotas.EntityData(entity_type=each["entityType"], entity_name=each["entityName"]) for each in entity],
        ops=[quotas.OpData(key=key, remove=True) for key in sorted(keys)],
    )
