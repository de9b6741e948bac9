"""The first records of a log, and records about brokers and topics, at each metadata.version that changes them.

Kafka's controller registers itself some time after its start, so that record is left out here.
"""

from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest

from ...configs import BROKER, DELETE, change_configs
from ...topics import assigned

pytestmark = pytest.mark.real_kafka

LEVELS = ["3.3-IV3", "3.6-IV0", "3.6-IV1", "3.7-IV2", "4.0-IV0", "4.0-IV1", "4.1-IV0", "4.3-IV0"]

TOPIC = assigned("t", [2, 1], min_insync_replicas="2")
# 3000 is the controller, which registers itself from 3.7-IV0 on.
BROKER_CONFIGS = [
    ("1", "min.insync.replicas"),
    ("", "min.insync.replicas"),
    ("1", "cordoned.log.dirs"),
    ("3000", "background.threads"),
]


def head(side: Any) -> list[tuple[str, int, Any]]:
    """The records of a new log; Kafka's controller is reachable before all of them are there."""
    records: list[tuple[str, int, Any]] = []

    def is_whole() -> bool:
        records.extend(
            (type(record).__name__, version, to_json(record, version)) for record, version in side.new_records()
        )
        names = [name for name, _, _ in records]
        return bool(names) and ("BeginTransactionRecord" in names) == ("EndTransactionRecord" in names)

    wait_until(is_whole, 60, "the first records")
    return records


def run(side: Any) -> dict[str, Any]:
    beginning = head(side)
    side.add_broker(1, "a", 2)
    side.add_broker(2, None, 1)
    brokers = [(type(record).__name__, version) for record, version in side.new_records()]
    outcomes = {"head": beginning, "brokers": brokers, "topic": side.outcome(CreateTopicsRequest(topics=[TOPIC]), 7)}
    for name, key in BROKER_CONFIGS:
        outcomes[f"{key} of {name!r}"] = side.outcome(change_configs((BROKER, name, (DELETE, key, None))), 1)
    return outcomes


@pytest.mark.parametrize("level", LEVELS)
def test_records_at_this_level_equal_kafkas(on_both: Any, level: str) -> None:
    theirs, ours = on_both(run, level)
    assert ours == theirs
