"""The configuration of a log (Kafka's `LogConfig`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The topic configs that a log uses, with Kafka's defaults, except that retention is off, as with cleanup.policy
    compact, until it is configured.
    """

    segment_bytes: int = 1 << 30
    max_message_bytes: int = 1_048_588
    is_log_append_time: bool = False
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = 3_600_000
    retention_bytes: int = -1
    retention_ms: int = -1


DEFAULT_CONFIG = LogConfig()
