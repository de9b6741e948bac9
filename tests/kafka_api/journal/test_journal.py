import json

import pytest
from mockraft.kafka_api.journal import ENTRY_OVERHEAD_BYTES, ClosedConnection, Failure, Journal

from ...rows import each_row
from .conftest import heartbeat


def closed(reason: str = "the peer closed") -> ClosedConnection:
    return ClosedConnection(5, "127.0.0.1:1", 900, 1005, reason, refused=False)


@pytest.fixture
def journal() -> Journal:
    return Journal(entries_max=100, bytes_max=1 << 20)


def test_json_lines_contain_every_field(journal: Journal) -> None:
    journal.add_exchange(heartbeat())
    journal.add_closed(closed(), "the peer closed")
    journal.add_failure(Failure(1006, "Traceback"))
    exchange, ended, broken = map(json.loads, journal.json_lines())
    assert (exchange["api"], exchange["apiVersion"], exchange["clientId"]) == ("BrokerHeartbeat", 2, "1")
    assert exchange["request"]["brokerId"] == 1
    assert exchange["response"]["isCaughtUp"] is True
    assert (exchange["receivedMs"], exchange["answeredMs"], exchange["servedBy"]) == (1000, 1002, "controller")
    assert (ended["reason"], ended["refused"], ended["peer"]) == ("the peer closed", False, "127.0.0.1:1")
    assert broken == {"id": 3, "node": 0, "brokenTickMs": 1006, "failure": "Traceback"}


def test_counts_since_the_start_and_picks_by_api(journal: Journal) -> None:
    journal.add_exchange(heartbeat())
    journal.add_exchange(heartbeat(failure="Traceback"))
    journal.add_closed(closed(), "the peer closed")
    assert journal.counters() == {
        "exchanges": {"BrokerHeartbeat": 2},
        "closed": {"the peer closed": 1},
        "failures": 1,
        "dropped": 0,
    }
    assert (len(journal.exchanges(63)), journal.exchanges(62)) == (2, [])
    assert [line.reason for line in journal.closed()] == ["the peer closed"]


def test_is_bounded_in_entries() -> None:
    journal = Journal(entries_max=3, bytes_max=1 << 20)
    for broker_id in range(10):
        journal.add_exchange(heartbeat(broker_id))
    assert [exchange.request.broker_id for exchange in journal.exchanges()] == [7, 8, 9]
    assert journal.counters()["dropped"] == 7
    assert journal.counters()["exchanges"] == {"BrokerHeartbeat": 10}


@each_row("kept", ["closed", "broken tick", "failure"])
def test_texts_count_as_bytes_held(kept: str) -> None:
    journal = Journal(entries_max=1000, bytes_max=1 << 20)
    for _ in range(100):
        text = "x" * (1 << 18)
        if kept == "closed":
            journal.add_closed(closed(text), "authentication")
        elif kept == "broken tick":
            journal.add_failure(Failure(1006, text))
        else:
            journal.add_exchange(heartbeat(failure=text))
    assert len(journal.entries) == 3
    assert journal.bytes_held <= journal.bytes_max


def test_is_bounded_in_bytes_but_keeps_the_newest_entry() -> None:
    journal = Journal(entries_max=1000, bytes_max=10 * ENTRY_OVERHEAD_BYTES)
    for _ in range(100):
        journal.add_exchange(heartbeat())
    assert len(journal.entries) < 10
    assert journal.bytes_held <= journal.bytes_max
    held = sum(entry.bytes_held + ENTRY_OVERHEAD_BYTES for entry in journal.entries)
    assert journal.bytes_held == held
    tiny = Journal(entries_max=10, bytes_max=10)
    for broker_id in (1, 2):
        tiny.add_exchange(heartbeat(broker_id))
    assert [exchange.request.broker_id for exchange in tiny.exchanges()] == [2]


def test_listeners_receive_every_entry_or_only_the_exchanges_that_broke(journal: Journal) -> None:
    every: list[object] = []
    broken: list[object] = []
    journal.subscribe(every.append)
    journal.subscribe(broken.append, every_exchange=False)
    entries = (heartbeat(), heartbeat(failure="Traceback"), closed(), Failure(1006, "Traceback"))
    journal.add_exchange(entries[0])
    journal.add_exchange(entries[1])
    journal.add_closed(entries[2], "the peer closed")
    journal.add_failure(entries[3])
    assert (every, broken) == ([*entries], [*entries[1:]])


def test_entries_name_themselves() -> None:
    assert repr(heartbeat()) == "<BrokerHeartbeat v2 correlation_id=7 connection=5 by controller>"
    assert repr(closed()) == "<connection 5 of 127.0.0.1:1 closed: the peer closed>"
    assert repr(Failure(9, "x")) == "<periodic work at 9>"


def test_ids_number_the_entries_and_nodes_share_them(journals: list[Journal]) -> None:
    first, second = journals
    first.add_exchange(heartbeat())
    second.add_exchange(heartbeat())
    first.add_closed(closed(), "the peer closed")
    assert [(entry.id, entry.node_id) for entry in first.entries] == [(1, 3000), (3, 3000)]
    assert [(entry.id, entry.node_id) for entry in second.entries] == [(2, 3001)]


def test_find_returns_matches_after_a_mark_and_the_newest(journal: Journal) -> None:
    for broker_id in range(6):
        if broker_id == 2:
            mark = journal.mark()
        journal.add_exchange(heartbeat(broker_id))
    even = journal.find(lambda exchange: exchange.request.broker_id % 2 == 0, mark)
    assert [exchange.request.broker_id for exchange in even] == [2, 4]
    assert [exchange.request.broker_id for exchange in journal.find(limit=2)] == [4, 5]
    assert journal.find(limit=0) == []
    assert journal.count(since=mark) == 4


def test_unexpected_requests_of_a_strict_script_are_found(journal: Journal) -> None:
    journal.add_exchange(heartbeat(1))
    journal.add_exchange(heartbeat(2, unmatched=True))
    assert [exchange.request.broker_id for exchange in journal.unmatched()] == [2]


def test_listener_may_be_removed_during_a_notification(journal: Journal) -> None:
    result: list[object] = []

    def once(entry: object) -> None:
        result.append(entry)
        journal.unsubscribe(once)

    journal.subscribe(once)
    journal.subscribe(result.append)
    journal.unsubscribe(print)
    journal.add_exchange(heartbeat())
    journal.add_exchange(heartbeat())
    assert len(result) == 3


def test_disabled_journal_counts_and_notifies_without_keeping_entries(journal: Journal) -> None:
    result: list[object] = []
    journal.subscribe(result.append)
    journal.enabled = False
    journal.add_exchange(heartbeat())
    assert (len(journal.entries), journal.bytes_held, len(result)) == (0, 0, 1)
    assert journal.counters()["exchanges"] == {"BrokerHeartbeat": 1}


def test_cleared_journal_continues_its_ids(journal: Journal) -> None:
    journal.add_exchange(heartbeat(failure="Traceback"))
    journal.clear()
    assert (journal.exchanges(), journal.bytes_held) == ([], 0)
    assert journal.counters() == {"exchanges": {}, "closed": {}, "failures": 0, "dropped": 0}
    journal.add_exchange(heartbeat())
    assert journal.exchanges()[0].id == 2
