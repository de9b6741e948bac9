"""Which topic names are allowed and which topics are Kafka's own (org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

import re
from typing import Final

NAME_LENGTH_MAX: Final = 249
GROUP_METADATA: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
INTERNAL: Final = frozenset((GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE))

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_valid(name: str) -> bool:
    """Whether a topic may have this name."""
    return name not in (".", "..") and len(name) <= NAME_LENGTH_MAX and _LEGAL.fullmatch(name) is not None
