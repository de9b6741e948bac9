"""The journal: its exchanges, what it keeps, and their lines of text."""

import json
from typing import Any

import pytest
from mockraft.kafka_api.api import Client
from mockraft.kafka_api.journal import (
    ENTRY_OVERHEAD_BYTES,
    Answer,
    ClosedConnection,
    Entry,
    Exchange,
    Failure,
    Journal,
    first_error,
    line,
    report,
)
from mockraft.wire.connection import Request, parse_request, write_request, write_response
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData

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


def test_an_exchange_is_decoded_when_looked_at() -> None:
    exchange = heartbeat(broker_id=3)
    assert exchange.request == BrokerHeartbeatRequest(broker_id=3)
    assert exchange.response == BrokerHeartbeatResponse(is_caught_up=True)


def test_an_api_versions_exchange_of_an_unknown_version_is_decoded() -> None:
    answer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = b"\x00\x12\x00\x63\x00\x00\x00\x01\xff\xff\x00strange"
    sent = Answer(write_response(answer.write(0), 1, 0), 0, "controller")
    exchange = Exchange(Client(1, "", "CONTROLLER"), Request(18, 99, 1, None, frame, 10), sent, 0, 0)
    assert exchange.request == ApiVersionsRequest()
    assert exchange.response == answer
    assert exchange.to_json()["apiVersion"] == 99


def test_exchange_without_an_answer_has_a_reason() -> None:
    exchange = heartbeat(reason="dropped", matched="slow-1")
    assert exchange.response is None
    assert exchange.error_code is None
    tree = exchange.to_json()
    assert (tree["response"], tree["responseHex"], tree["reason"]) == (None, None, "dropped")
    assert (tree["matched"], tree["brokerId"], tree["unmatched"]) == ("slow-1", 1, False)


def test_an_answer_that_was_spoilt_is_shown_as_bytes() -> None:
    exchange = heartbeat()
    exchange.answer = exchange.answer._replace(frame=exchange.response_frame[:-3])
    assert exchange.error_code is None
    tree = exchange.to_json()
    assert (tree["response"], tree["responseHex"]) == (None, exchange.response_frame.hex())


def test_a_summary_names_the_error_and_has_no_bodies() -> None:
    summary: dict[str, Any] = heartbeat(error_code=77).summary()
    assert (summary["error"], summary["bytes"] > 30, summary["failure"]) == ("STALE_BROKER_EPOCH", True, None)
    assert "request" not in summary
    assert heartbeat().summary()["error"] is None


def test_finds_the_first_error_however_deep() -> None:
    deep = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(), PartitionData(error_code=74)])])
    assert first_error(deep) == 74
    assert first_error(BrokerHeartbeatResponse(error_code=77)) == 77
    assert first_error(BrokerHeartbeatResponse()) == 0
    large = deep.responses[0].partitions[0]
    large.records = bytes(1000)
    sent = Answer(write_response(deep.write(12), 7, 1), 12, "controller")
    exchange = Exchange(Client(5, "", "CONTROLLER"), Request(1, 12, 7, "1", b"", 0), sent, 0, 0)
    assert exchange.error_code == 74


def journalled(*entries: Entry) -> list[Entry]:
    journal = Journal(100, 1 << 20)
    for entry in entries:
        if isinstance(entry, Exchange):
            journal.add_exchange(entry)
        elif isinstance(entry, ClosedConnection):
            journal.add_closed(entry, "x")
        else:
            journal.add_failure(entry)
    return list(journal.entries)


def test_line_contains_time_client_request_and_outcome() -> None:
    (entry,) = journalled(heartbeat(at_ms=1998, want_fence=True, offset=12, error_code=77, matched="slow-1"))
    assert line(entry, since_ms=500) == (
        "+1.498 s  #1  broker 1, connection 5  BrokerHeartbeat v2 currentMetadataOffset=12 wantFence  "
        "→ STALE_BROKER_EPOCH  after 2 ms  by stub slow-1"
    )


def test_line_contains_the_reason_without_an_answer_and_for_an_unexpected_request() -> None:
    (dropped,) = journalled(heartbeat(reason="dropped", unmatched=True))
    assert line(dropped).endswith("→ no answer (dropped)  after 2 ms  UNEXPECTED")
    (spoilt,) = journalled(heartbeat())
    assert isinstance(spoilt, Exchange)
    spoilt.answer = spoilt.answer._replace(frame=spoilt.response_frame[:-2])
    assert "→ 17 bytes that cannot be read" in line(spoilt)


def test_line_of_a_fetch_of_one_partition_contains_its_offset() -> None:
    asked = FetchRequest(topics=[FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(fetch_offset=31)])])
    header = parse_request(write_request(asked, 17, 1, "raft-client-1")[4:])
    sent = Answer(write_response(FetchResponse().write(17), 1, 1), 17, "controller")
    exchange = Exchange(Client(3, "", "CONTROLLER"), header, sent, 0, 0)
    assert line(exchange) == "+0.000 s  #0  raft-client-1, connection 3  Fetch v17 fetchOffset=31  → ok"


def test_a_failure_is_its_last_line_only() -> None:
    (broken,) = journalled(heartbeat(failure="Traceback\n  somewhere\nKeyError: 7"))
    assert line(broken).endswith("BROKE: KeyError: 7")


def test_report_merges_repeated_lines() -> None:
    text = report(
        journalled(
            heartbeat(at_ms=0, offset=1),
            heartbeat(at_ms=1000, offset=2),
            ClosedConnection(6, "127.0.0.1:1", 0, 1500, "refused: a frame of negative length -1", refused=True),
            heartbeat(at_ms=2000, offset=3),
            heartbeat(at_ms=3000, error_code=77),
            heartbeat(at_ms=3100, matched="late"),
            heartbeat(at_ms=3200, matched="late"),
            Failure(4000, "Traceback\nValueError: no"),
        ),
        since_ms=0,
    )
    assert text.splitlines() == [
        "+0.000 s  #1  broker 1, connection 5  BrokerHeartbeat v2 currentMetadataOffset=1  "
        "→ ok isCaughtUp isFenced  after 2 ms  ×3, last at +2.000 s",
        "+1.500 s  #3  connection 6            closed by the controller:  refused: a frame of negative length -1",
        "+3.000 s  #5  broker 1, connection 5  BrokerHeartbeat v2  → STALE_BROKER_EPOCH  after 2 ms",
        "+3.100 s  #6  broker 1, connection 5  BrokerHeartbeat v2  → ok isCaughtUp isFenced  after 2 ms  by stub late  "
        "×2, last at +3.200 s",
        "+4.000 s  #8  controller              a login, periodic work or a listener broke:  ValueError: no",
    ]


def test_times_of_a_report_begin_with_its_first_entry() -> None:
    assert report(journalled(heartbeat(at_ms=5000))).startswith("+0.000 s  #1  ")


def test_a_report_keeps_the_newest_lines_and_counts_the_others() -> None:
    entries = journalled(*(heartbeat(broker_id, error_code=77 + broker_id % 2) for broker_id in range(10)))
    lines = report(entries, lines_max=2).splitlines()
    assert lines[0] == "(8 earlier entries left out)"
    assert [text.split()[2] for text in lines[1:]] == ["#9", "#10"]
    assert report([]) == ""


def test_a_report_on_a_quorum_names_the_nodes() -> None:
    first, second = journalled(heartbeat(1), heartbeat(2))
    first.node_id, second.node_id = 3000, 3001
    assert isinstance(second, Exchange)
    second.client = second.client._replace(connection_id=6)
    assert "broker 2, connection 6, at 3001" in report([first, second])
