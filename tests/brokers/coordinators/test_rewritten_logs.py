"""Coordinators' logs stay short: the state is written again, and the log begins there."""

from __future__ import annotations

import pytest
from mockraft.brokers.coordinators import state_log
from mockraft.brokers.coordinators.members import Offset
from mockraft.brokers.coordinators.state_records import encode
from mockraft.brokers.coordinators.transaction import Producer
from mockraft.brokers.log_dirs import replica_log
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.log_dirs.transaction_markers import Marker

from .conftest import IDS, Led

BYTES = 4_000
OFFSETS = (IDS["__consumer_offsets"], 0)
TRANSACTIONS = (IDS["__transaction_state"], 0)
GROUPS = ("g", "h")
PRODUCER = Producer(7, 0)
GROUP_METADATA_KEY = b"\0\2\0\1g"


@pytest.fixture(autouse=True)
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_log, "REWRITTEN_BYTES", BYTES)
    monkeypatch.setattr(replica_log, "ROLLED_BYTES", BYTES)


def log(led: Led, key: tuple[bytes, int] = OFFSETS) -> ReplicaLog:
    return led.hosts.find(key).log


def commit(led: Led, *offsets: int) -> None:
    for offset in offsets:
        for group_id in GROUPS:
            led.groups.commit(group_id, {("orders", partition): Offset(offset, 0, "") for partition in range(3)})
        led.run()


def committed(led: Led, group_id: str = "g") -> list[int]:
    group = led.groups.find(group_id)
    return [] if group is None else [offset.offset for _, offset in sorted(group.offsets.items())]


def test_log_of_groups_stays_short_and_keeps_the_latest_offsets(led: Led) -> None:
    for number in range(300):
        commit(led, number)
        assert log(led).size_bytes < 4 * BYTES
    assert log(led).start_offset > 1_000
    led.groups.delete("h")
    led.run()
    for _ in range(2):
        assert (committed(led), committed(led, "h")) == ([299] * 3, [])
        led.forget()


def test_large_state_is_written_again_only_after_twice_its_bytes(led: Led) -> None:
    led.groups.commit("large", {("orders", partition): Offset(1, 0, "") for partition in range(500)})
    led.run()
    state_bytes, end_offset = log(led).size_bytes, log(led).end_offset
    assert state_bytes > 4 * BYTES
    commit(led, *range(20))
    assert log(led).end_offset == end_offset + 20 * 6
    assert log(led).start_offset > 0
    led.forget()
    assert committed(led, "large") == [1] * 500


def test_log_of_transactions_stays_short_and_keeps_every_id(led: Led) -> None:
    for number in range(300):
        led.transactions.initialize(f"tx-{number % 7}", 60_000, None)
        led.run()
        assert log(led, TRANSACTIONS).size_bytes < 4 * BYTES
    for _ in range(2):
        for number in range(7):
            known = led.transactions.find(f"tx-{number}")
            assert known is not None
            assert known.producer_epoch >= 300 // 7 - 1
        led.forget()


@pytest.mark.parametrize("is_commit", [True, False])
def test_log_is_not_rewritten_while_a_transaction_is_open(led: Led, is_commit: bool) -> None:
    led.groups.commit("t", {("orders", 0): Offset(5, 0, "")}, PRODUCER)
    commit(led, *range(100))
    assert log(led).start_offset == 0
    led.forget()
    led.groups.end_transaction(0, Marker(PRODUCER.producer_id, PRODUCER.epoch, 0, is_commit), lambda _: None)
    commit(led, 100)
    assert log(led).start_offset > 0
    led.forget()
    assert (committed(led), committed(led, "t")) == ([100] * 3, [5] if is_commit else [])


def test_log_begins_later_only_once_the_state_is_replicated(led: Led) -> None:
    led.hosts.find(OFFSETS).state.isr = frozenset((1, 2))
    for number in range(100):
        commit(led, number)
        led.replicate(OFFSETS)
        if log(led).high_watermark < log(led).end_offset:
            break
    else:
        pytest.fail("the log was never rewritten")
    before = log(led).start_offset
    led.replicate(OFFSETS)
    assert log(led).start_offset > before
    led.forget()
    assert committed(led) == [number] * 3


def test_log_with_records_of_other_kinds_is_not_rewritten(led: Led) -> None:
    hosted = led.hosts.find(OFFSETS)
    hosted.append_state(encode([(GROUP_METADATA_KEY, b"\0\3")], 1), 1)
    led.forget()
    commit(led, *range(100))
    assert (log(led).start_offset, committed(led)) == (0, [99] * 3)
