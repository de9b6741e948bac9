"""Small rules of older releases, asked of their own controllers and of ours: texts about voters, levels, resets."""

from typing import Any

import pytest
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

from ...configs import GROUP, SET, change_configs
from . import test_voters_parity as voters

pytestmark = pytest.mark.real_kafka

LEVELS = (
    ("streams.version", 0, 1),
    ("streams.version", 1, 1),
    ("kraft.version", 1, 1),
    ("kraft.version", 1, 1),
    ("kraft.version", 0, 1),
    ("kraft.version", 0, 2),
    ("kraft.version", 0, 1),
)
"""Features, levels and types of updates."""


def run(side: Any) -> dict[str, Any]:
    found = voters.run(side)
    for number, (feature, level, kind) in enumerate(LEVELS):
        update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        asked = UpdateFeaturesRequest(feature_updates=[update], timeout_ms=60_000)
        found[f"update {number}: {feature} {level}"] = side.outcome(asked, 1)
    offered = side.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    found["levels"] = sorted((each.name, each.max_version_level) for each in offered.finalized_features)
    for value in ("by_duration", "none"):
        request = change_configs((GROUP, "g", (SET, "share.auto.offset.reset", value)))
        found[f"reset to {value}"] = side.outcome(request, 1)
    return found


@pytest.mark.parametrize("kafka_version", ["3.9.2", "4.0.2", "4.1.2"])
def test_responses_and_records_equal_kafkas(on_both: Any, kafka_version: str) -> None:
    theirs, ours = on_both(run, kafka_version=kafka_version)
    assert ours == theirs
