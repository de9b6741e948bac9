"""Kafka's internal topics and the rules for topic names (org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

from typing import Final

from mockraft.wire.topic_names import reason_invalid as reason_invalid

GROUP_METADATA: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
INTERNAL: Final = frozenset((GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE))


def is_valid(name: str) -> bool:
    """Return True if a topic may have this name."""
    return reason_invalid(name) is None
