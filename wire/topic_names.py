"""The metadata log's topic, brokers' internal topics, and validation of topic names (Kafka's Topic class)."""

import re
from typing import Final

from mockraft.wire.java_values import utf16_length

CLUSTER_METADATA: Final = "__cluster_metadata"
CLUSTER_METADATA_ID: Final = bytes(15) + b"\x01"
"""The metadata log's topic, and its id (KIP-595)."""

GROUP_METADATA: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
INTERNAL: Final = frozenset((GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE))
"""Topics that only brokers write (org.apache.kafka.common.internals.Topic)."""

_NAME_LENGTH_MAX: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def reason_invalid(name: str) -> str | None:
    """Return Kafka's message about an invalid topic name; None if it is valid."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif utf16_length(name) > _NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {_NAME_LENGTH_MAX}"
    elif not _LEGAL.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {reason}"


def collision_key(name: str) -> str | None:
    """Return the key by which names collide, as `.` and `_` are one in metric names; None for a name without either."""
    return name.replace(".", "_") if "." in name or "_" in name else None
