"""Kafka's settings for a broker's replicas: those of server.properties and those of topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from mockraft.brokers.image import ClusterImage
from mockraft.brokers.image.cluster_image import BROKER_RESOURCE, TOPIC_RESOURCE
from mockraft.brokers.log_dirs.produced_batches import DEFAULT_CONFIG, LogConfig
from mockraft.wire.java_values import parse_integer

RETENTION_MS = 7 * 24 * 3_600_000
BROKER_NAMES: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "max.message.bytes": "message.max.bytes",
    "segment.bytes": "log.segment.bytes",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "cleanup.policy": "log.cleanup.policy",
    "message.timestamp.type": "log.message.timestamp.type",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
}
"""The broker's config with the default of each topic config (ServerTopicConfigSynonyms)."""


class ReplicaSettings(NamedTuple):
    """Settings of server.properties, named as there. Times in ms, sizes in bytes."""

    replica_lag_time_max_ms: int = 30_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_min_bytes: int = 1
    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_response_max_bytes: int = 10_485_760
    replica_fetch_backoff_ms: int = 1_000
    fetch_max_bytes: int = 57_671_680

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ReplicaSettings:
        """Read server.properties. Raises ValueError for an invalid or negative number."""
        named = {}
        for field in cls._fields:
            name = field.replace("_", ".")
            if name in properties:
                named[field] = whole_number(name, properties[name])
        return cls(**named)


class TopicSettings(NamedTuple):
    """The settings of one topic's partitions."""

    min_insync_replicas: int
    log: LogConfig


def topic_settings(image: ClusterImage, broker_id: int, topic: str, properties: Mapping[str, str]) -> TopicSettings:
    """Return a topic's settings: its own, the broker's dynamic ones, the cluster's, server.properties."""

    def find(name: str, default: str) -> str:
        own = image.config(TOPIC_RESOURCE, topic).get(name)
        if own is not None:
            return own
        broker_name = BROKER_NAMES[name]
        for resource in (str(broker_id), ""):
            dynamic = image.config(BROKER_RESOURCE, resource).get(broker_name)
            if dynamic is not None:
                return dynamic
        return properties.get(broker_name, default)

    def number(name: str, default: int) -> int:
        # A controller under test may accept values that are no numbers.
        found = parse_integer(find(name, ""), 64)
        return default if found is None else found

    is_deleted = "delete" in find("cleanup.policy", "delete").split(",")
    log = LogConfig(
        retention_bytes=number("retention.bytes", -1) if is_deleted else -1,
        retention_ms=number("retention.ms", RETENTION_MS) if is_deleted else -1,
        segment_bytes=number("segment.bytes", DEFAULT_CONFIG.segment_bytes),
        max_message_bytes=number("max.message.bytes", DEFAULT_CONFIG.max_message_bytes),
        is_log_append_time=find("message.timestamp.type", "CreateTime") == "LogAppendTime",
        timestamp_before_max_ms=number("message.timestamp.before.max.ms", DEFAULT_CONFIG.timestamp_before_max_ms),
        timestamp_after_max_ms=number("message.timestamp.after.max.ms", DEFAULT_CONFIG.timestamp_after_max_ms),
    )
    return TopicSettings(number("min.insync.replicas", 1), log)


def whole_number(name: str, text: str) -> int:
    """Parse the value of this setting. ValueError for an invalid or negative number."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError(f"{name} must be an integer from 0 up, not {text!r}")
    return number
