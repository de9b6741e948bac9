from collections.abc import Iterator

import pytest
from mockraft import Controller, stub
from mockraft.kafka_api.api import Client
from mockraft.kafka_api.journal import Answer, Exchange, Journal
from mockraft.server.admin.metrics import BUCKETS_US, KINDS_MAX, Metrics, RequestCounts
from mockraft.server.double import Double
from mockraft.server.stubs.script import Script
from mockraft.wire.connection import Request, parse_request, write_request, write_response
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from prometheus_client.parser import text_string_to_metric_families

Values = dict[str, float]

HEARTBEATS = "mockraft_requests_total{api=BrokerHeartbeat,error=NONE,version=2}"


def values(metrics: Metrics) -> Values:
    """Samples by name and labels as the text has them, the node left out."""
    found: Values = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={said}" for name, said in sorted(sample.labels.items()) if name != "node")
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


@pytest.fixture(scope="module")
def scraped() -> Iterator[Values]:
    with Controller.sync(brokers=2, assert_all_used=False) as controller:
        inner = controller.inside
        metrics = controller.call(lambda: Metrics(inner))
        controller.call(lambda: inner.script.stubs.add(stub("Fetch").named("slow fetches", id="slow").pass_through()))
        controller.call(lambda: inner.script.faults.add("latency", id="far", latency_ms=1))
        yield controller.call(lambda: values(metrics))


def test_counts_requests_by_api_version_and_error_those_before_it_began_too(scraped: Values) -> None:
    assert scraped["mockraft_requests_total{api=BrokerRegistration,error=NONE,version=4}"] == 2
    assert scraped["mockraft_requests_total{api=Fetch,error=FENCED_LEADER_EPOCH,version=18}"] == 2
    assert scraped["mockraft_received_bytes_total"] > 500
    assert scraped["mockraft_sent_bytes_total"] > 500


def test_cluster_metrics_have_kafkas_names(scraped: Values) -> None:
    assert scraped["kafka_controller_active_controller_count"] == 1
    assert scraped["kafka_controller_active_broker_count"] == 2
    assert scraped["kafka_controller_fenced_broker_count"] == 0
    assert scraped["kafka_controller_offline_partition_count"] == 0
    assert scraped["kafka_controller_preferred_replica_imbalance_count"] == 0
    assert scraped["kafka_controller_broker_registration_state{broker=1}"] == 30
    applied = scraped["kafka_controller_last_applied_record_offset"]
    assert applied == scraped["kafka_controller_last_committed_record_offset"] > 10
    assert scraped["kafka_raft_current_leader"] == 3000


def test_listener_journal_stub_and_process_metrics_are_exported(scraped: Values) -> None:
    assert scraped["mockraft_connections"] >= 4
    assert scraped["mockraft_journal_entries"] >= 8
    assert scraped["mockraft_failures_total"] == 0
    assert scraped["mockraft_stub_requests_total{name=slow fetches,stub=slow}"] >= 0
    assert scraped["mockraft_fault_fired_total{fault=far,kind=latency}"] >= 0
    assert scraped["process_resident_memory_bytes"] > 1 << 20


def test_two_doubles_count_for_themselves() -> None:
    with Controller.sync() as one, Controller.sync() as other:
        first = one.call(lambda: Metrics(one.inside))
        second = other.call(lambda: Metrics(other.inside))
        other.call(lambda: other.journal.add_exchange(heartbeat()))
        assert HEARTBEATS not in one.call(lambda: values(first))
        assert other.call(lambda: values(second))[HEARTBEATS] == 1


def test_a_double_that_does_not_run_any_more_has_only_the_process_left() -> None:
    left = {name.partition("{")[0] for name in values(Metrics(Double(dict, Script())))} - {"mockraft_codec"}
    assert {name.partition("_")[0] for name in left} == {"process"}


def heartbeat(error_code: int = 0, took_us: int = 0, is_answered: bool = True) -> Exchange:
    asked = write_request(BrokerHeartbeatRequest(), 2, 7, "1")[4:]
    answer = write_response(BrokerHeartbeatResponse(error_code=error_code).write(2), 7, 1) if is_answered else b""
    client = Client(5, "", "CONTROLLER")
    return Exchange(client, parse_request(asked), Answer(answer, 2, "controller"), 0, 0, took_us)


def counted(*exchanges: Exchange) -> RequestCounts:
    journal = Journal(100, 1 << 20)
    counts = RequestCounts(journal)
    for exchange in exchanges:
        journal.add_exchange(exchange)
    counts.settle()
    return counts


def test_unanswered_and_changed_responses_are_counted_separately() -> None:
    spoilt = heartbeat()
    spoilt.answer = spoilt.answer._replace(frame=spoilt.response_frame[:-2])
    counts = counted(heartbeat(), heartbeat(77), heartbeat(is_answered=False), spoilt, heartbeat(77))
    assert counts.requests == {
        ("BrokerHeartbeat", 2, "NONE"): 1,
        ("BrokerHeartbeat", 2, "STALE_BROKER_EPOCH"): 2,
        ("BrokerHeartbeat", 2, "UNANSWERED"): 2,
    }


def test_a_large_answer_is_looked_into_at_once() -> None:
    topics = [CreatableTopicResult(name=f"topic-{number}", error_code=36) for number in range(20)]
    frame = write_response(CreateTopicsResponse(topics=topics).write(7), 7, 1)
    header = Request(19, 7, 7, "1", b"", 0)
    counts = counted(Exchange(Client(5, "", "CONTROLLER"), header, Answer(frame, 7, "controller"), 0, 0))
    assert counts.requests == {("CreateTopics", 7, "TOPIC_ALREADY_EXISTS"): 1}


def test_latencies_fall_into_buckets() -> None:
    counts = counted(*(heartbeat(took_us=took_us) for took_us in (0, 50, 51, 51, 7_000, 60_000_000)))
    buckets = dict(zip((*BUCKETS_US, "more"), counts.latencies["BrokerHeartbeat"], strict=True))
    assert {bound: count for bound, count in buckets.items() if count} == {50: 2, 100: 2, 10_000: 1, "more": 1}
    assert counts.elapsed_us["BrokerHeartbeat"] == 60_007_152


def test_latency_is_a_histogram_in_seconds(scraped: Values) -> None:
    """The names and units of https://prometheus.io/docs/practices/naming."""
    name = "mockraft_request_latency_seconds"
    bounds = [float(key.split("le=")[1].rstrip("}")) for key in scraped if key.startswith(f"{name}_bucket{{api=Fetch,")]
    assert bounds == sorted(bounds)
    assert (bounds[0], bounds[-2:]) == (0.00005, [5, float("inf")])
    counts = [scraped[key] for key in scraped if key.startswith(f"{name}_bucket{{api=BrokerRegistration,")]
    assert counts == sorted(counts)
    assert counts[-1] == scraped[f"{name}_count{{api=BrokerRegistration}}"] == 2
    assert 0 < scraped[f"{name}_sum{{api=BrokerRegistration}}"] < 10


def test_kinds_of_answers_are_bounded() -> None:
    counts = counted(*(heartbeat(error_code=number) for number in range(KINDS_MAX + 1)))
    assert counts.requests.total() == KINDS_MAX + 1
    assert len(counts._kinds) < KINDS_MAX
