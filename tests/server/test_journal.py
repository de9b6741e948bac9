import json
from typing import Any

import pytest
from mockraft.server.journal import ENTRY_OVERHEAD_BYTES, BrokenTick, ClosedConnection, Exchange, Journal
from mockraft.wire.connection import write_request, write_response
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse


def heartbeat(broker_id: int = 1, failure: str | None = None) -> Exchange:
    request = write_request(BrokerHeartbeatRequest(broker_id=broker_id), 2, 7, "1")[4:]
    response = write_response(BrokerHeartbeatResponse(is_caught_up=True).write(2), 7, 1)
    return Exchange(5, 1000, 1002, (63, 2, 7, "1"), request, response, 2, "controller", failure)


def closed(reason: str = "the peer closed") -> ClosedConnection:
    return ClosedConnection(5, "127.0.0.1:1", 900, 1005, reason, refused=False)


@pytest.fixture
def journal() -> Journal:
    return Journal(entries_max=100, bytes_max=1 << 20)


def test_an_exchange_is_decoded_when_looked_at() -> None:
    exchange = heartbeat(broker_id=3)
    assert exchange.request == BrokerHeartbeatRequest(broker_id=3)
    assert exchange.response == BrokerHeartbeatResponse(is_caught_up=True)


def test_an_api_versions_exchange_of_an_unknown_version_is_decoded() -> None:
    answer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = b"\x00\x12\x00\x63\x00\x00\x00\x01\xff\xff\x00strange"
    exchange = Exchange(1, 0, 0, (18, 99, 1, None), frame, write_response(answer.write(0), 1, 0), 0, "controller", None)
    assert exchange.request == ApiVersionsRequest()
    assert exchange.response == answer
    assert exchange.to_json()["apiVersion"] == 99


def test_json_lines_say_everything(journal: Journal) -> None:
    journal.add_exchange(heartbeat())
    journal.add_closed(closed(), "the peer closed")
    journal.add_broken_tick(BrokenTick(1006, "Traceback"))
    exchange, ended, broken = map(json.loads, journal.json_lines())
    assert (exchange["api"], exchange["apiVersion"], exchange["clientId"]) == ("BrokerHeartbeat", 2, "1")
    assert exchange["request"]["brokerId"] == 1
    assert exchange["response"]["isCaughtUp"] is True
    assert (exchange["receivedMs"], exchange["answeredMs"], exchange["servedBy"]) == (1000, 1002, "controller")
    assert (ended["reason"], ended["refused"], ended["peer"]) == ("the peer closed", False, "127.0.0.1:1")
    assert broken == {"brokenTickMs": 1006, "failure": "Traceback"}


def test_a_listener_may_want_only_the_exchanges_that_broke(journal: Journal) -> None:
    told: list[object] = []
    journal.subscribe(told.append, every_exchange=False)
    entries = (heartbeat(), heartbeat(failure="Traceback"), closed(), BrokenTick(1006, "Traceback"))
    journal.add_exchange(entries[0])
    journal.add_exchange(entries[1])
    journal.add_closed(entries[2], "the peer closed")
    journal.add_broken_tick(entries[3])
    assert told == [*entries[1:]]


def test_counts_since_the_start(journal: Journal) -> None:
    journal.add_exchange(heartbeat())
    journal.add_exchange(heartbeat(failure="Traceback"))
    journal.add_closed(closed(), "the peer closed")
    assert journal.counters() == {
        "exchanges": {"BrokerHeartbeat": 2},
        "closed": {"the peer closed": 1},
        "failures": 1,
        "dropped": 0,
    }


def test_is_bounded_in_entries() -> None:
    journal = Journal(entries_max=3, bytes_max=1 << 20)
    for broker_id in range(10):
        journal.add_exchange(heartbeat(broker_id))
    assert [exchange.request.broker_id for exchange in journal.exchanges()] == [7, 8, 9]
    assert journal.counters()["dropped"] == 7
    assert journal.counters()["exchanges"] == {"BrokerHeartbeat": 10}


@pytest.mark.parametrize("kept", ["closed", "broken tick", "failure"])
def test_texts_count_as_bytes_held(kept: str) -> None:
    journal = Journal(entries_max=1000, bytes_max=1 << 20)
    for _ in range(100):
        text = "x" * (1 << 18)
        if kept == "closed":
            journal.add_closed(closed(text), "authentication")
        elif kept == "broken tick":
            journal.add_broken_tick(BrokenTick(1006, text))
        else:
            journal.add_exchange(heartbeat(failure=text))
    assert len(journal.entries) == 3
    assert journal.bytes_held <= journal.bytes_max


def test_is_bounded_in_bytes() -> None:
    journal = Journal(entries_max=1000, bytes_max=10 * ENTRY_OVERHEAD_BYTES)
    for _ in range(100):
        journal.add_exchange(heartbeat())
    assert len(journal.entries) < 10
    assert journal.bytes_held <= journal.bytes_max
    held = sum(entry.bytes_held + ENTRY_OVERHEAD_BYTES for entry in journal.entries)
    assert journal.bytes_held == held


def test_keeps_the_newest_entry_whatever_its_size() -> None:
    journal = Journal(entries_max=10, bytes_max=10)
    journal.add_exchange(heartbeat(1))
    journal.add_exchange(heartbeat(2))
    (only,) = journal.exchanges()
    assert only.request.broker_id == 2


def test_picks_exchanges_by_api(journal: Journal) -> None:
    journal.add_exchange(heartbeat())
    journal.add_closed(closed(), "the peer closed")
    assert len(journal.exchanges(63)) == 1
    assert journal.exchanges(62) == []
    assert [line.reason for line in journal.closed()] == ["the peer closed"]


def test_tells_listeners_of_every_entry(journal: Journal) -> None:
    told: list[Any] = []
    journal.subscribe(told.append)
    exchange, ended = heartbeat(), closed()
    journal.add_exchange(exchange)
    journal.add_closed(ended, "the peer closed")
    assert told == [exchange, ended]


def test_entries_name_themselves() -> None:
    assert repr(heartbeat()) == "<BrokerHeartbeat v2 correlation_id=7 connection=5 by controller>"
    assert repr(closed()) == "<connection 5 of 127.0.0.1:1 closed: the peer closed>"
    assert repr(BrokenTick(9, "x")) == "<periodic work at 9>"
