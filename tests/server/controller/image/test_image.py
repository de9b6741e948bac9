"""The image: the effect of each record, and its form as records again."""

from typing import Any

import pytest
from mockraft.releases import Behaviour, metadata_version, release
from mockraft.server.controller.image import NOT_MODELLED, Image
from mockraft.server.controller.image.cluster import ReplayError
from mockraft.server.controller.image.image import APPLIES
from mockraft.wire import records
from mockraft.wire.metadata_log_frame import RecordAt, decode, encode
from mockraft.wire.records.client_quota_record import EntityData
from mockraft.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature
from mockraft.wire.records.register_controller_record import ControllerEndpoint, ControllerFeature

from ....conftest import uuid
from ....rows import each_row

METADATA_RECORD_TYPES = 27


def record(kind: str, /, **fields: Any) -> Any:
    return records.by_name(kind)(**fields)


def image_of(*applied: Any) -> Image:
    image = Image()
    for offset, one in enumerate(applied):
        image.apply(one, offset)
    return image


def full_image(level: int = 30) -> Image:
    """An image with something of everything that a level can say."""
    version = metadata_version(level)
    directories, elr = version.has(Behaviour.DIRECTORY_ASSIGNMENT), version.has(Behaviour.ELR_RECORDS)
    result = [
        record("FeatureLevelRecord", name="metadata.version", feature_level=level),
        record("FeatureLevelRecord", name="group.version", feature_level=1),
        record(
            "RegisterBrokerRecord",
            broker_id=1,
            incarnation_id=uuid(1),
            broker_epoch=5,
            end_points=[BrokerEndpoint(name="P", host="h", port=9092, security_protocol=0)],
            features=[BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
            rack="r",
            fenced=False,
            in_controlled_shutdown=True,
            log_dirs=[uuid(11), uuid(10)] if directories else [],
            cordoned_log_dirs=[uuid(10)] if version.has(Behaviour.CORDONED_LOG_DIRS) else None,
        ),
        record("TopicRecord", name="t", topic_id=uuid(2)),
        record(
            "PartitionRecord",
            partition_id=0,
            topic_id=uuid(2),
            replicas=[1, 2, 3],
            isr=[1],
            leader=1,
            leader_epoch=3,
            partition_epoch=9,
            leader_recovery_state=1,
            adding_replicas=[3],
            removing_replicas=[2],
            directories=[uuid(10), uuid(20), uuid(30)] if directories else [],
            eligible_leader_replicas=[2] if elr else None,
            last_known_elr=[1] if elr else None,
        ),
        record("ConfigRecord", resource_type=2, resource_name="t", name="retention.ms", value="5"),
        record("ClientQuotaRecord", entity=[EntityData(entity_type="user", entity_name=None)], key="k", value=1.5),
        record("ProducerIdsRecord", broker_id=1, broker_epoch=5, next_producer_id=2000),
        record(
            "AccessControlEntryRecord", id=uuid(40), resource_type=2, resource_name="t", principal="User:a", host="*"
        ),
    ]
    if version.has(Behaviour.CONTROLLER_REGISTRATION):
        result.append(
            record(
                "RegisterControllerRecord",
                controller_id=3000,
                incarnation_id=uuid(3),
                end_points=[ControllerEndpoint(name="C", host="h", port=9093, security_protocol=3)],
                features=[ControllerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1)],
            )
        )
    if version.has(Behaviour.SCRAM):
        result.append(
            record("UserScramCredentialRecord", name="a", mechanism=1, salt=b"s", stored_key=b"k", iterations=9)
        )
    if version.has(Behaviour.DELEGATION_TOKENS):
        result.append(
            record("DelegationTokenRecord", owner="User:a", renewers=["User:b"], token_id="x", max_timestamp=7)
        )
    return image_of(*result)


def test_every_metadata_record_type_is_applied_or_not_modelled_with_a_reason() -> None:
    applied = {records.TYPES[api_key] for api_key in APPLIES}
    transactions = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}
    assert applied | transactions | set(NOT_MODELLED) == set(records.TYPES.values())
    assert len(applied) + len(transactions) + len(NOT_MODELLED) == METADATA_RECORD_TYPES
    assert all(NOT_MODELLED.values())


@each_row("name", sorted(NOT_MODELLED))
def test_unmodelled_record_is_ignored(name: str) -> None:
    image = full_image()
    image.apply(record(name), 99)
    assert image == full_image()


@each_row("level", sorted(release().metadata_versions))
def test_an_image_survives_a_round_trip_through_records(level: int) -> None:
    image = full_image(level)
    result = [decode(encode(*record_at)) for record_at in image.to_records(level)]
    assert image_of(*(record_at.record for record_at in result)) == image


def test_records_come_in_the_order_of_a_kafka_snapshot() -> None:
    result = [records.TYPES[record_at.record.api_key] for record_at in full_image().to_records(30)]
    assert result == [
        "FeatureLevelRecord",
        "FeatureLevelRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "TopicRecord",
        "PartitionRecord",
        "ConfigRecord",
        "ClientQuotaRecord",
        "ProducerIdsRecord",
        "AccessControlEntryRecord",
        "UserScramCredentialRecord",
        "DelegationTokenRecord",
    ]


def test_metadata_version_is_the_first_record() -> None:
    image = image_of(
        record("FeatureLevelRecord", name="group.version", feature_level=1),
        record("FeatureLevelRecord", name="metadata.version", feature_level=25),
    )
    assert [record_at.record.name for record_at in image.to_records(25)] == ["metadata.version", "group.version"]


@each_row("level", [7, 14, 16, 22, 29])
def test_omits_fields_unknown_to_a_lower_level(level: int) -> None:
    result = [decode(encode(*record_at)).record for record_at in full_image(30).to_records(level)]
    image = image_of(*result)
    assert image.metadata_version == level
    assert image.cluster.brokers[1].cordoned_log_dirs is None
    assert bool(image.cluster.brokers[1].log_dirs) == (level >= 17)
    assert bool(image.topics.by_name["t"].partitions[0].elr) == (level >= 23)
    assert bool(image.cluster.controllers) == (level >= 15)
    assert bool(image.security.scram) == (level >= 11)
    assert bool(image.security.delegation_tokens) == (level >= 14)


def test_a_feature_at_level_zero_is_no_longer_finalized() -> None:
    levels = [record("FeatureLevelRecord", name="group.version", feature_level=level) for level in (1, 0)]
    assert image_of(*levels).features == {}


def test_deleted_config_is_removed_with_its_empty_resource() -> None:
    values = [
        record("ConfigRecord", resource_type=4, resource_name="1", name="k", value=value) for value in ("v", None)
    ]
    assert image_of(values[0]).configs == {(4, "1"): {"k": "v"}}
    assert image_of(*values).configs == {}


def test_unknown_topic_config_is_skipped_on_replay() -> None:
    assert image_of(record("ConfigRecord", resource_type=2, resource_name="t", name="no.such", value="v")).configs == {}


def test_removed_quotas_credentials_acls_and_tokens_leave_no_entry() -> None:
    image = full_image()
    for gone in (
        record(
            "ClientQuotaRecord",
            entity=[EntityData(entity_type="user", entity_name=None)],
            key="k",
            value=0.0,
            remove=True,
        ),
        record("RemoveUserScramCredentialRecord", name="a", mechanism=1),
        record("RemoveAccessControlEntryRecord", id=uuid(40)),
        record("RemoveDelegationTokenRecord", token_id="x"),
    ):
        image.apply(gone, 99)
    assert image.settings.client_quotas == {}
    assert (image.security.scram, image.security.acls, image.security.delegation_tokens) == ({}, {}, {})


def test_a_transaction_takes_effect_at_its_end() -> None:
    image = image_of(record("BeginTransactionRecord", name="x"))
    inside = record("FeatureLevelRecord", name="metadata.version", feature_level=30)
    assert image.apply(inside, 1) == ()
    assert image.features == {}
    assert image.apply(record("EndTransactionRecord"), 2) == (inside,)
    assert image.features == {"metadata.version": 30}
    assert image.open_transaction is None


def test_an_aborted_transaction_never_was() -> None:
    image = image_of(record("BeginTransactionRecord", name="x"), record("TopicRecord", name="t", topic_id=uuid(1)))
    assert image.apply(record("AbortTransactionRecord", reason="r"), 2) == ()
    assert image == Image()


@each_row(("before", "name"), [([], "EndTransactionRecord"), (["Begin"], "BeginTransactionRecord")])
def test_a_transaction_that_does_not_begin_and_end_is_refused(before: list[str], name: str) -> None:
    image = image_of(*(record(f"{each}TransactionRecord") for each in before))
    with pytest.raises(ReplayError, match=r"^a transaction "):
        image.apply(record(name), 1)


def test_a_record_read_from_bytes_is_applied_like_one_made_here() -> None:
    made = RecordAt(record("TopicRecord", name="t", topic_id=uuid(1)), 0)
    assert image_of(decode(encode(*made)).record) == image_of(made.record)


def test_a_snapshot_names_no_broker_for_the_next_block_of_producer_ids() -> None:
    image = image_of(record("ProducerIdsRecord", broker_id=1, broker_epoch=5, next_producer_id=1000))
    (at,) = image.settings.producer_ids_to_records()
    assert at == RecordAt(record("ProducerIdsRecord", broker_id=-1, broker_epoch=-1, next_producer_id=1000), 0)
