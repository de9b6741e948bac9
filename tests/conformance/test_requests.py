"""A request from a JSON tree with the relevant fields only."""

from typing import Any

import pytest
from mockraft.conformance.requests import request
from mockraft.wire.errors import WireError


def test_omitted_fields_have_kafkas_defaults() -> None:
    asked: Any = request("CreateTopics", {"topics": [{"name": "t", "configs": [{"name": "a"}]}]}, 7)
    assert (asked.timeout_ms, asked.validate_only) == (60_000, False)
    (topic,) = asked.topics
    assert (topic.name, topic.num_partitions, topic.assignments, topic.configs[0].value) == ("t", 0, [], "")


def test_structs_uuids_and_bytes_have_defaults_too() -> None:
    fetch: Any = request("FetchSnapshot", {"topics": [{"partitions": [{}]}]}, 1)
    assert fetch.topics[0].partitions[0].snapshot_id.epoch == 0
    registration: Any = request("BrokerRegistration", {}, 4)
    assert registration.incarnation_id == bytes(16)
    envelope: Any = request("Envelope", {}, 0)
    assert envelope.request_data == b""


def test_errors_name_the_field() -> None:
    with pytest.raises(WireError, match="numPartition"):
        request("CreateTopics", {"topics": [{"numPartition": 1}]}, 7)
