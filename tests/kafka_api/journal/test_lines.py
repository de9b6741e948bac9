from mockraft.kafka_api.api import Client
from mockraft.kafka_api.journal import Answer, ClosedConnection, Entry, Exchange, Failure, Journal, line, report
from mockraft.wire.connection import parse_request, write_request, write_response
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.fetch_response import FetchResponse

from .conftest import heartbeat


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
        "+4.000 s  #8  controller              a login or periodic work broke:  ValueError: no",
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
