"""Settings of a topic's partitions: the strongest value counts, and each is read into its own field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.log_dirs.produced_batches import LogConfig
from mockraft.brokers.partitions.settings import RETENTION_MS, ReplicaSettings, TopicSettings, topic_settings
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord

from ...rows import each_row

TOPIC, BROKER = 2, 4
DELETED = LogConfig(retention_ms=RETENTION_MS)


def image(*configs: tuple[int, str, str, str]) -> ClusterImage:
    made = ClusterImage()
    for kind, resource, name, value in configs:
        made.apply(RecordAt(ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value), 0))
    return made


def of_topic(**values: str) -> TopicSettings:
    configs = [(TOPIC, "orders", name.replace("_", "."), value) for name, value in values.items()]
    return topic_settings(image(*configs), 1, "orders", {})


def test_defaults_are_kafkas() -> None:
    assert of_topic() == TopicSettings(1, DELETED)


@each_row(
    ("name", "field"),
    [
        ("segment.bytes", "segment_bytes"),
        ("max.message.bytes", "max_message_bytes"),
        ("retention.bytes", "retention_bytes"),
        ("retention.ms", "retention_ms"),
        ("message.timestamp.before.max.ms", "timestamp_before_max_ms"),
        ("message.timestamp.after.max.ms", "timestamp_after_max_ms"),
    ],
)
def test_each_number_has_its_field(name: str, field: str) -> None:
    changed: dict[str, Any] = {field: 9_876_543_210}
    assert of_topic(**{name: "9876543210"}) == TopicSettings(1, replace(DELETED, **changed))


def test_other_values_have_theirs() -> None:
    assert of_topic(min_insync_replicas="3").min_insync_replicas == 3
    assert of_topic(message_timestamp_type="LogAppendTime").log.is_log_append_time
    assert not of_topic(message_timestamp_type="CreateTime").log.is_log_append_time


@each_row(("policy", "is_deleted"), [("compact", False), ("delete", True), ("compact,delete", True)])
def test_retention_is_for_topics_whose_records_are_deleted(policy: str, is_deleted: bool) -> None:
    log = of_topic(cleanup_policy=policy, retention_ms="5", retention_bytes="6").log
    assert (log.retention_ms, log.retention_bytes) == ((5, 6) if is_deleted else (-1, -1))


def test_the_topic_comes_before_the_broker_the_cluster_and_the_file() -> None:
    values = [
        (BROKER, "", "log.segment.bytes", "2"),
        (BROKER, "1", "log.segment.bytes", "3"),
        (TOPIC, "orders", "segment.bytes", "4"),
    ]
    found = [topic_settings(image(*values[:count]), 1, "orders", {"log.segment.bytes": "1"}) for count in range(4)]
    assert [each.log.segment_bytes for each in found] == [1, 2, 3, 4]
    assert topic_settings(image(*values), 2, "payments", {}).log.segment_bytes == 2


def test_a_value_that_is_no_number_is_the_default() -> None:
    assert of_topic(retention_ms="soon", min_insync_replicas="") == TopicSettings(1, DELETED)


def test_settings_of_server_properties_are_read_by_their_names() -> None:
    assert ReplicaSettings.of({"replica.fetch.min.bytes": "7", "log.dirs": "/a"}) == ReplicaSettings(
        replica_fetch_min_bytes=7
    )
    with pytest.raises(ValueError, match=r"replica\.fetch\.max\.bytes must be an integer from 0 up, not '-1'"):
        ReplicaSettings.of({"replica.fetch.max.bytes": "-1"})
    assert ReplicaSettings.of({"fetch.max.bytes": "0"}).fetch_max_bytes == 0
