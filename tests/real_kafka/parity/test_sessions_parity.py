"""Brokers that fall silent, come back, are replaced and shut down: the same on Kafka's controller and on ours."""

from typing import Any

import pytest
from mockraft.kafka.child_process import wait_until
from mockraft.releases import release
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ...budgets import soak
from ...topics import assigned

pytestmark = pytest.mark.real_kafka

SESSION_TIMEOUT_MS = 1600
FAR_OFFSET = 1 << 40
BEHIND = 5
TOPICS = {"a": [1, 2, 3], "b": [1], "c": [2, 1]}
FENCED = 1


class Life:
    """Requests of three brokers to one controller; `seen` collects answers and records."""

    def __init__(self, side: Any) -> None:
        self.side = side
        self.seen: list[Any] = []
        self.epochs: dict[int, int] = {}
        self.topics: dict[bytes, str] = {}

    def register(self, broker_id: int, incarnation: int, previous_epoch: int = -1) -> None:
        request = self.side.registration(
            broker_id,
            release().feature_ranges(),
            incarnation_id=bytes([broker_id, incarnation]) * 8,
            log_dirs=[bytes([broker_id]) * 16],
            previous_broker_epoch=previous_epoch,
        )
        response = self.side.ask(request, 4)
        if response.error_code == 0:
            self.epochs[broker_id] = response.broker_epoch
        self.seen.append((f"register {broker_id}", response.error_code, self.records()))

    def heartbeat(self, broker_id: int, offset: int = FAR_OFFSET, **wishes: Any) -> Any:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            **{"broker_epoch": self.epochs[broker_id], "current_metadata_offset": offset, **wishes},
        )
        response = self.side.ask(request, 2)
        self.seen.append((f"heartbeat {broker_id}", to_json(response, 2), self.records()))
        return response

    def create_topic(self, name: str, replicas: list[int]) -> None:
        self._all_give_a_sign_of_life(set(self.epochs))
        topic = assigned(name, replicas, min_insync_replicas="2")
        response = self.side.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert response.topics[0].error_code == 0
        self.topics[response.topics[0].topic_id] = name
        self.records()

    def wait_for_fencing(self, fenced: set[int], living: set[int]) -> None:
        """Until these brokers were fenced; the living ones send heartbeats meanwhile, as brokers do."""
        found: list[Any] = []

        def all_are_fenced() -> bool:
            self._all_give_a_sign_of_life(living)
            found.extend(self.records())
            return fenced <= {result["brokerId"] for _, _, result in found if result.get("fenced") == FENCED}

        wait_until(all_are_fenced, 60, f"brokers {fenced} fenced")
        self.seen.append((f"fenced {fenced}", found))

    def _all_give_a_sign_of_life(self, living: set[int]) -> None:
        for broker_id in sorted(living):
            epoch = self.epochs[broker_id]
            sign = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=FAR_OFFSET)
            self.side.ask(sign, 2)

    def records(self) -> list[Any]:
        """Records about partitions and brokers since the last call, with topics by name and without epochs."""
        result = []
        for record, version in self.side.new_records():
            kind = "change" if isinstance(record, PartitionChangeRecord) else "registration"
            if isinstance(record, PartitionChangeRecord | BrokerRegistrationChangeRecord):
                tree: dict[str, Any] = to_json(record, version)
                tree.pop("brokerEpoch", None)
                if isinstance(record, PartitionChangeRecord):
                    tree["topicId"] = self.topics[record.topic_id]
                result.append((kind, version, tree))
        # Where several topics change at once, their order is no promise; before or after the registration is.
        changes = sorted((one for one in result if one[0] == "change"), key=lambda one: one[2]["topicId"])
        registrations = [one for one in result if one[0] == "registration"]
        return registrations + changes if result and result[0][0] == "registration" else changes + registrations


def life(side: Any) -> list[Any]:
    brokers = Life(side)
    for broker_id in (1, 2, 3):
        brokers.register(broker_id, 1)
        brokers.heartbeat(broker_id)
    for name, replicas in TOPICS.items():
        brokers.create_topic(name, replicas)
    brokers.wait_for_fencing({1}, living={2, 3})
    brokers.heartbeat(1)
    brokers.register(1, incarnation=2)
    brokers.heartbeat(1, want_shut_down=True)
    brokers.wait_for_fencing({1}, living={2, 3})
    brokers.wait_for_fencing({2}, living={3})
    brokers.wait_for_fencing({3}, living=set())
    last_epoch = brokers.epochs[1]
    brokers.register(1, incarnation=3, previous_epoch=last_epoch)
    brokers.register(2, incarnation=2)
    for broker_id in (1, 2, 3):
        brokers.heartbeat(broker_id)
    brokers.heartbeat(1, broker_epoch=last_epoch)
    brokers.heartbeat(2, BEHIND)
    brokers.heartbeat(3, BEHIND)
    assert brokers.heartbeat(1, want_shut_down=True).should_shut_down is False
    brokers.heartbeat(2)
    assert brokers.heartbeat(1, want_shut_down=True).should_shut_down is False
    brokers.heartbeat(3)
    assert brokers.heartbeat(1, want_shut_down=True).should_shut_down is True
    return brokers.seen


@pytest.mark.parametrize("level", [None, pytest.param("3.5-IV2", marks=soak)])
def test_silence_and_shutdown_come_to_the_same_on_both(on_both: Any, level: str | None) -> None:
    theirs, ours = on_both(life, level, SESSION_TIMEOUT_MS)
    for their_step, our_step in zip(theirs, ours, strict=True):
        assert our_step == their_step
