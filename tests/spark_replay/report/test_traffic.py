"""Statistics of traffic, and the sketches that they are made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.spark_replay import schemas
from mockraft.spark_replay.report import sections
from mockraft.spark_replay.report.sketches import DistinctKeys, LogHistogram, Tally, TimeBins
from mockraft.spark_replay.report.traffic import UNKNOWN_API, Traffic

from .rows import FETCH, SECOND, answer, batch, fetch, heartbeat, logged, messages, registered


def traffic_of(*rows: dict[str, object]) -> Traffic:
    traffic = Traffic()
    traffic.add_messages(messages(*rows))
    return traffic


def kinds(traffic: Traffic) -> list[tuple[float, str, str]]:
    return [(each.at_ns / SECOND, each.kind, each.who) for each in traffic.events.listed()]


def test_intervals_of_heartbeats_go_on_over_connections() -> None:
    traffic = traffic_of(heartbeat(1), heartbeat(3), heartbeat(5), heartbeat(105, conn_id=2), heartbeat(107, conn_id=2))
    (heartbeats,) = [heartbeats.joined() for heartbeats in traffic.heartbeats.brokers.values()]
    assert heartbeats.count == 5
    assert heartbeats.intervals.total == 4
    assert heartbeats.gaps[0] == (100 * SECOND, 105 * SECOND)


def test_sums_are_the_same_in_one_batch_and_in_many_in_any_order() -> None:
    rows = [heartbeat(1), answer(1.1, is_fenced=True), heartbeat(3), answer(3.1, is_fenced=False), fetch(4, 1)]
    rows += [heartbeat(5), answer(5.1, is_fenced=False), fetch(6, 2), heartbeat(9, broker=2, conn_id=2)]
    whole, parts = traffic_of(*rows), Traffic()
    for row in reversed(rows):
        parts.add_messages(messages(row))
    assert kinds(parts) == kinds(whole) == [(3.1, "unfenced", "broker 1"), (6, "new leader", "node 3000")]
    assert parts.coverage.counts == whole.coverage.counts
    assert sections.totals(parts) == sections.totals(whole)
    assert sections.apis(parts) == sections.apis(whole)
    gaps = [
        [heartbeats.joined().gaps for _, heartbeats in sorted(each.heartbeats.brokers.items())]
        for each in (whole, parts)
    ]
    assert gaps[0] == gaps[1]


def test_refused_broker_is_not_reported_as_unfenced() -> None:
    refused = {**answer(2, is_fenced=False), "body": '{"errorCode":77,"isFenced":false}'}
    traffic = traffic_of(heartbeat(1), answer(1, is_fenced=True), refused, answer(3, is_fenced=True))
    assert kinds(traffic) == []
    assert sections.errors(traffic) == [
        {"api": "BrokerHeartbeat", "code": 77, "name": "STALE_BROKER_EPOCH", "answers": 1}
    ]


def test_reports_registrations_and_leaders() -> None:
    asked = {**fetch(1, 2), "is_response": False}
    traffic = traffic_of(asked, *registered(5, 9), fetch(6, 3), fetch(7, 4, leader=3001))
    assert kinds(traffic) == [(5, "registered", "broker 9"), (7, "new leader", "node 3001")]


FENCED = '{"brokerId":%d,"brokerEpoch":5,"fenced":%d}'
LOG = [
    logged(1, 6, "TopicRecord", '{"name":"orders","topicId":"T"}'),
    logged(5, 7, "RegisterBrokerRecord", '{"brokerId":9,"brokerEpoch":7}'),
    logged(6, 11, "RegisterBrokerRecord", '{"brokerId":8,"brokerEpoch":9}'),
    logged(8, 12, "BrokerRegistrationChangeRecord", FENCED % (1, 1)),
    logged(8, 13, "PartitionChangeRecord", '{"partitionId":0,"topicId":"T","isr":[],"leader":-1}'),
    logged(8, 14, "PartitionChangeRecord", '{"partitionId":1,"topicId":"T","leader":-1}'),
    logged(8, 15, "PartitionChangeRecord", '{"partitionId":1,"topicId":"T","isr":[1]}'),
    logged(9, 16, "LeaderChangeMessage", '{"version":0,"leaderId":3001}'),
    logged(9, 17, "ConfigRecord", '{"resourceType":2,"resourceName":"orders","name":"retention.ms","value":"1"}'),
]


def test_log_has_the_events_that_no_response_has_and_each_once() -> None:
    rows = [*registered(5, 9), heartbeat(1), answer(1.1, is_fenced=False), answer(12, is_fenced=True), fetch(2, 3)]
    traffic = traffic_of(*rows)
    other = [{**LOG[3], "offset": 3, "topic": "orders"}, {**LOG[3], "offset": 4, "snapshot": "5-1"}]
    # Each replica fetches the same records.
    for _ in range(2):
        traffic.events.log.add(batch(schemas.RECORDS, [*LOG, *other]))
    assert kinds(traffic)[1:] == [
        (5, "registered", "broker 9"),
        (6, "registered", "broker 8"),
        (8, "fenced", "broker 1"),
        (8, "no leader", "orders"),
        (9, "config changed", "orders"),
        (9, "new leader", "node 3001"),
    ]
    (_, *_, lost, _, _) = traffic.events.listed()
    assert lost.detail == "2 records from offset 13"


def test_events_of_the_log_outside_the_capture_are_not_of_it() -> None:
    traffic = traffic_of(heartbeat(8.5), heartbeat(10))
    impossible = [
        {**LOG[3], "offset": 20 + at, "timestamp_ms": ms} for at, ms in enumerate([(1 << 63) - 1, 1 << 50, -1])
    ]
    elected = {**LOG[7], "offset": 30, "leader_epoch": 9, "timestamp_ms": 1 << 62}
    traffic.events.log.add(batch(schemas.RECORDS, [*LOG, *impossible, elected, {**LOG[3], "body": None}]))
    assert [row["kind"] for row in sections.event_rows(traffic)] == ["config changed"]


def test_counts_registrations_that_were_accepted() -> None:
    unanswered = registered(5, 6, conn_id=8)[:1]
    rows = [*registered(1, 4), *registered(2, 4, error_code=101, conn_id=6), *registered(3, 5, conn_id=7), *unanswered]
    for order in (rows, rows[::-1]):
        traffic = Traffic()
        for row in order:
            traffic.add_messages(messages(row))
        assert kinds(traffic) == [(1, "registered", "broker 4"), (3, "registered", "broker 5")]
        assert traffic.events.counts.counts["registered"] == 2


def test_resets_are_summed_by_sender_and_receiver_and_not_among_the_events() -> None:
    traffic = traffic_of(heartbeat(1))
    ends = {"client": "a", "server": "b", "server_port": 9093, "incarnation": 1, "kind": "rst"}
    rows = [
        {"conn_id": at, "client_port": at, "dir": int(at == 3), "ts_ns": at * SECOND + 5_000_000} for at in (1, 2, 3)
    ]
    for row in rows:
        traffic.events.add_conn_events(batch(schemas.CONN_EVENTS, [row], **ends))
    assert sections.event_rows(traffic) == []
    found = [tuple(row.values()) for row in sections.reset_rows(traffic)]
    assert found == [
        ("a", "b:9093", 2, "1970-01-01 00:00:01.005", "1970-01-01 00:00:02.005"),
        ("b:9093", "a", 1, "1970-01-01 00:00:03.005", "1970-01-01 00:00:03.005"),
    ]


def test_connections_without_frames_are_counted_apart() -> None:
    traffic = traffic_of(heartbeat(1), heartbeat(2, conn_id=2))
    ends = {"client": "a", "client_port": 1, "server": "b", "server_port": 2, "incarnation": 1, "kind": "syn"}
    rows = [{"conn_id": conn_id, "dir": way, "ts_ns": 1} for conn_id in (2, 3, 4) for way in (0, 1)]
    traffic.events.add_conn_events(batch(schemas.CONN_EVENTS, rows, **ends))
    total = sections.totals(traffic)
    assert (total["connections"], total["connectionsSeen"]) == (2, 4)
    assert [(row["kind"], row["count"]) for row in sections.not_read(traffic)["connections"]] == [("syn", 3)]


def test_events_have_clock_times_and_seconds() -> None:
    traffic = traffic_of(heartbeat(1_764_000_000), *registered(1_764_000_002, 9))
    (row,) = sections.event_rows(traffic)
    assert (row["time"], row["at"], row["kind"]) == ("2025-11-24 16:00:02.000", 2, "registered")


def test_frames_that_are_not_read_are_counted_and_the_first_of_each_kind_is_kept() -> None:
    bad = {"api_key": FETCH, "decode_status": "error", "roundtrip": None, "error": "short", "error_offset": 4}
    traffic = traffic_of({**bad, "ts_last_ns": 2}, {**bad, "ts_last_ns": 1, "frame_no": 7}, {"roundtrip": False})
    assert [row["frame_no"] for row in traffic.examples.values()] == [7, 0]
    assert [row["status"] for row in sections.unread(traffic, {})] == ["error", "round trip differs"]
    assert sections.totals(traffic)["roundtrip"] == {"notTried": 2, "different": 1}


def test_unknown_apis_and_versions_share_one_row() -> None:
    rows = [{"api_key": key, "api_version": key, "decode_status": "unknown_api"} for key in range(5_000, 5_300)]
    traffic = traffic_of(*rows, {"api_key": None, "decode_status": "opaque"})
    assert [(row["apiKey"], row["requests"]) for row in sections.apis(traffic)] == [(UNKNOWN_API, 301)]
    assert set(traffic.requests) == {UNKNOWN_API}


def test_events_of_connections_are_counted_and_the_loud_ones_listed() -> None:
    traffic = Traffic()
    ends = {"client": "a", "client_port": 1, "server": "b", "server_port": 2, "dir": 1}
    rows = [{"kind": "gap", "ts_ns": 5, "bytes": 1460, "detail": None}, {"kind": "fin", "ts_ns": 1, "bytes": 0}]
    traffic.events.add_conn_events(batch(schemas.CONN_EVENTS, rows, conn_id=1, incarnation=1, **ends))
    assert [(row["kind"], row["count"], row["bytes"]) for row in sections.not_read(traffic)["connections"]] == [
        ("gap", 1, 1460),
        ("fin", 1, 0),
    ]
    assert [(each.kind, each.who, each.detail) for each in traffic.events.listed()] == [
        ("gap", "b:2 → a:1", "1,460 bytes")
    ]


def test_events_of_files_are_summed_by_kind() -> None:
    traffic = Traffic()
    rows = [{"file": f"dir/{name}.pcap", "kind": "not_tcp", "count": 3} for name in "ab"]
    traffic.add_file_events(batch(schemas.FILE_EVENTS, rows, file_offset=0))
    (row,) = sections.not_read(traffic)["files"]
    assert (row["count"], row["files"]) == (6, ["a.pcap", "b.pcap"])


def test_damaged_places_of_files_are_counted_apart_with_their_bytes() -> None:
    traffic = Traffic()
    kinds_of = {"truncated": 156, "corrupt": 40, "quarantined": 0, "not_tcp": 3}
    rows = [{"file": "a.pcap", "kind": kind, "count": count} for kind, count in kinds_of.items()]
    traffic.add_file_events(batch(schemas.FILE_EVENTS, rows, file_offset=0))
    assert sections.damaged(traffic) == {"count": 3, "bytes": 196}
    result = {row["kind"]: row["inBytes"] for row in sections.not_read(traffic)["files"]}
    assert result == {"truncated": True, "corrupt": True, "quarantined": False, "not_tcp": False}


NUMBERS = st.lists(st.integers(1, 10**15), min_size=1, max_size=50)


def test_a_percentile_is_off_by_no_more_than_a_bucket() -> None:
    histogram = LogHistogram()
    values = np.random.default_rng(5).lognormal(15, 2, 20_000).astype(np.int64)
    histogram.add(values)
    for share in (0.5, 0.9, 0.99, 0.999):
        assert histogram.quantile(share) == pytest.approx(np.quantile(values, share), rel=0.05)
    assert (histogram.total, histogram.least, histogram.most) == (20_000, values.min(), values.max())


def test_empty_sketch_has_no_percentile() -> None:
    assert LogHistogram().quantile(0.5) is None


@given(NUMBERS, NUMBERS)
def test_histograms_that_are_merged_are_one_of_all(left: list[int], right: list[int]) -> None:
    both, one, other = LogHistogram(), LogHistogram(), LogHistogram()
    both.add(np.array(left + right))
    one.add(np.array(left))
    other.add(np.array(right))
    one.merge(other)
    assert (one.counts == both.counts).all()
    assert (one.least, one.most) == (both.least, both.most)


@given(NUMBERS, NUMBERS)
def test_time_bins_keep_every_count_when_they_get_wider_and_are_merged(left: list[int], right: list[int]) -> None:
    both, one, other = TimeBins(8), TimeBins(8), TimeBins(8)
    both.add(np.array(left + right))
    one.add(np.array(left))
    other.add(np.array(right))
    one.merge(other)
    assert sum(one.values.values()) == len(left + right)
    assert len(one.values) <= 8
    both.widen(one.step)
    one.widen(both.step)
    assert one.values == both.values


def test_time_bins_of_the_largest_keep_it() -> None:
    bins = TimeBins(4, of_largest=True)
    bins.add(np.array([1, 2, 10**9]), np.array([5, 9, 3]))
    assert sorted(bins.values.values()) == [3, 9]


def test_few_keys_are_counted_exactly_and_many_within_five_percent() -> None:
    few, many = DistinctKeys(), DistinctKeys(kept_max=2_000)
    hashes = np.random.default_rng(7).integers(0, 2**64, 100_000, dtype=np.uint64)
    few.add(np.concatenate([hashes[:500], hashes[:500]]))
    for part in np.split(hashes, 10):
        many.add(part)
    assert few.count == 500
    assert many.count == pytest.approx(100_000, rel=0.05)


def test_a_tally_is_full_of_keys_at_some_time_and_never_of_counts() -> None:
    tally: Tally[str] = Tally(keys_max=2)
    for key in ("a", "b", "c", "a", "d"):
        tally.add(key)
    assert (tally.counts, tally.others, tally.total) == ({"a": 2, "b": 1}, 2, 5)
