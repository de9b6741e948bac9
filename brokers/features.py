"""The features of Kafka 4.3.1, as its brokers register them and as its storage tool initializes a cluster with them."""

from __future__ import annotations

from collections.abc import Mapping

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
}
"""The feature ranges that a 4.3.1 broker supports, (min, max) by feature."""
