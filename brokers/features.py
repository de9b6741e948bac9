"""The features of the default release, as its brokers register them and as its storage tool initializes a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from mockraft.releases import release

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = release().feature_ranges()
"""The feature ranges that a broker supports, (min, max) by feature."""
