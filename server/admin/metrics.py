"""Prometheus metrics of a double: those of Kafka's controller, under its JMX names, and mockraft's own.

Every double has its own registry; everything but the counts of requests is looked up on a scrape.
Source of the names: ControllerMetadataMetrics, QuorumControllerMetrics and KafkaRaftMetrics, in snake_case.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

from mockraft.kafka_api.journal import Entry, Exchange, Journal
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.controller.image import BrokerRegistration
from mockraft.server.double import Double
from mockraft.server.running import RunningController
from mockraft.server.views import BrokerView
from mockraft.wire import api_keys, codec_path, error_codes
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

BUCKETS_US = (
    *(50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000),
    *(1_000_000, 2_500_000, 5_000_000),
)
"""Upper bounds of the latency histogram in microseconds: from 50 µs to 5 s."""

LARGE_FRAME_BYTES = 256
KINDS_MAX = 2048

UNANSWERED = "UNANSWERED"
"""Label in place of an error if there is no readable answer."""

_WITH_RECORDS = (api_keys.FETCH, api_keys.FETCH_SNAPSHOT)


_Kind = tuple[int, int, int, bytes | int | None]
"""API key, version, bucket of the latency, and the error code, or the answer's bytes that have it."""


@dataclass(slots=True)
class _Counted:
    exchange: Exchange
    elapsed_us: int
    count: int = 1


class RequestCounts:
    """Counts of a journal's entries, those that it held before included.

    Most answers of an API differ only in their correlation id, so they are counted by their bytes, and each distinct
    answer is decoded for its error once, when `settle` is called.
    """

    def __init__(self, journal: Journal) -> None:
        self.requests: Counter[tuple[str, int, str]] = Counter()
        """Number by API, version and error."""
        self.latencies: dict[str, list[int]] = {}
        """Number by API that took at most each of `BUCKETS_US`, and that took longer."""
        self.elapsed_us: Counter[str] = Counter()
        self.received_bytes = self.sent_bytes = self.unexpected = 0
        self._kinds: dict[_Kind, _Counted] = {}
        for entry in journal.entries:
            self._count(entry)
        journal.subscribe(self._count)

    def settle(self) -> None:
        """Bring `requests`, `latencies` and `elapsed_us` up to date."""
        kinds, self._kinds = self._kinds, {}
        for (_, version, bucket, code_or_body), counted in kinds.items():
            code = counted.exchange.error_code if isinstance(code_or_body, bytes) else code_or_body
            error = UNANSWERED if code is None else error_codes.name(code)
            api = counted.exchange.api
            self.requests[api, version, error] += counted.count
            buckets = self.latencies.setdefault(api, [0] * (len(BUCKETS_US) + 1))
            buckets[bucket] += counted.count
            self.elapsed_us[api] += counted.elapsed_us

    def _count(self, entry: Entry) -> None:
        if entry.__class__ is not Exchange:
            return
        wire = entry.envelope or entry
        self.received_bytes += len(wire.request_frame) + 4
        self.sent_bytes += len(wire.response_frame)
        frame = entry.response_frame
        self.unexpected += entry.unmatched
        api_key = entry.api_key
        code_or_body: bytes | int | None
        if len(frame) <= LARGE_FRAME_BYTES:
            code_or_body = frame[8:]
        else:
            # Whoever is refused a fetch is sent no records.
            code_or_body = error_codes.NONE if api_key in _WITH_RECORDS else entry.error_code
        kind = (api_key, entry.api_version, bisect_left(BUCKETS_US, entry.took_us), code_or_body)
        known = self._kinds.get(kind)
        if known is not None:
            known.count += 1
            known.elapsed_us += entry.took_us
            return
        self._kinds[kind] = _Counted(entry, entry.took_us)
        if len(self._kinds) >= KINDS_MAX:
            self.settle()


__all__ = ["CONTENT_TYPE", "Metrics"]

_FENCED, _CONTROLLED_SHUTDOWN, _ACTIVE = 10, 20, 30


class Metrics:
    """The metrics of a double; use it in the thread of its event loop, and create it when the double starts."""

    def __init__(self, double: Double) -> None:
        self.double = double
        self._counts: WeakKeyDictionary[Journal, RequestCounts] = WeakKeyDictionary()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        for journal in double.journals.values():
            self._counts_of(journal)

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format, whose type is `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not collect values before there are any."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the current values, for the registry."""
        nodes = {str(node_id): running for node_id, running in sorted(self.double.nodes().items())}
        yield from self._requests({node: running.node.journal for node, running in nodes.items()})
        yield from _listeners(nodes)
        yield from _controllers({node: running.controller for node, running in nodes.items()})
        yield from self._brokers()
        yield from self._script()
        yield gauge("mockraft_codec", "1 for the codec's path in use", ("path",), [((codec_path.path,), 1)])

    def _counts_of(self, journal: Journal) -> RequestCounts:
        """Follow the journals of restarted nodes."""
        counts = self._counts.get(journal)
        if counts is None:
            counts = self._counts[journal] = RequestCounts(journal)
        return counts

    def _requests(self, journals: dict[str, Journal]) -> Iterator[Metric]:
        counts = {node: self._counts_of(journal) for node, journal in journals.items()}
        for each in counts.values():
            each.settle()
        yield counter(
            "mockraft_requests",
            "Requests, by API, version and the first error of the answer; UNANSWERED without an answer.",
            ("node", "api", "version", "error"),
            (
                ((node, api, str(version), error), count)
                for node, each in counts.items()
                for (api, version, error), count in sorted(each.requests.items())
            ),
        )
        yield latencies(counts)
        yield from counters(
            counts,
            "mockraft_",
            ("received_bytes", "Bytes of requests, lengths included.", lambda each: each.received_bytes),
            ("sent_bytes", "Bytes of answers, lengths included.", lambda each: each.sent_bytes),
            ("unexpected_requests", "Requests that strict stubs did not expect.", lambda each: each.unexpected),
        )

    def _brokers(self) -> Iterator[Metric]:
        brokers = self.double.state.brokers() if self.double.nodes() else []
        yield gauge(
            "kafka_controller_broker_registration_state",
            "State of a broker's registration: 10 fenced, 20 in controlled shutdown, 30 active.",
            ("broker",),
            [((str(broker.broker_id),), _registration_state(broker)) for broker in brokers],
        )
        yield gauge(
            "mockraft_broker_metadata_lag",
            "Committed records that a broker has not fetched yet.",
            ("broker",),
            [((str(broker.broker_id),), broker.lag) for broker in brokers if broker.lag is not None],
        )

    def _script(self) -> Iterator[Metric]:
        stubs = self.double.script.stubs.stubs
        yield counter(
            "mockraft_stub_requests",
            "Requests that a stub served.",
            ("stub", "name"),
            [((stub.id, stub.name or ""), stub.call_count) for stub in stubs],
        )
        faults = self.double.script.faults.all
        yield counter(
            "mockraft_fault_fired",
            "How often a fault took effect.",
            ("fault", "kind"),
            [((fault.id, fault.kind.name), fault.fired) for fault in faults],
        )


def _listeners(nodes: dict[str, RunningController]) -> Iterator[Metric]:
    journals = {node: running.node.journal for node, running in nodes.items()}
    yield counter(
        "mockraft_closed_connections",
        "Closed connections, by reason.",
        ("node", "reason"),
        (
            ((node, reason), count)
            for node, journal in journals.items()
            for reason, count in sorted(journal.closed_by_reason.items())
        ),
    )
    yield from counters(
        journals,
        "mockraft_",
        ("failures", "Failures of mockraft's own handlers and periodic work.", lambda journal: journal.failures),
        ("journal_dropped_entries", "Entries dropped because the journal was full.", lambda journal: journal.dropped),
    )
    yield from gauges(
        journals,
        "mockraft_",
        ("journal_entries", "Entries in the journal.", lambda journal: len(journal.entries)),
        ("journal_bytes", "Bytes that the journal holds.", lambda journal: journal.bytes_held),
    )
    yield from gauges(
        nodes,
        "mockraft_",
        ("connections", "Open connections.", lambda running: running.node.connections),
        ("waiting_requests", "Requests that wait for records.", lambda running: running.node.parked),
    )


def _controllers(controllers: dict[str, Controller]) -> Iterator[Metric]:
    """Yield the state of each node; a standby's image is as old as its fetches."""
    yield from gauges(
        controllers,
        "kafka_controller_",
        ("active_controller_count", "1 on the active controller.", lambda c: c.epoch != STANDBY),
        ("active_broker_count", "Unfenced brokers.", lambda c: len(_unfenced(c))),
        ("fenced_broker_count", "Fenced brokers.", lambda c: len(c.image.cluster.brokers) - len(_unfenced(c))),
        ("controlled_shutdown_broker_count", "Brokers in controlled shutdown.", _shutting_down),
        ("global_topic_count", "Topics.", lambda c: len(c.image.topics.by_id)),
        (
            "global_partition_count",
            "Partitions.",
            lambda c: sum(len(t.partitions) for t in c.image.topics.by_id.values()),
        ),
        ("offline_partition_count", "Partitions without a leader.", lambda c: len(c.image.topics.index.leaderless())),
        (
            "preferred_replica_imbalance_count",
            "Partitions whose leader is not the preferred replica.",
            lambda c: len(c.image.topics.index.imbalanced()),
        ),
        ("last_applied_record_offset", "Offset of the last record in the image.", lambda c: c.applied_offset - 1),
        ("last_committed_record_offset", "Offset of the last committed record.", lambda c: c.log.high_watermark - 1),
    )
    yield from gauges(
        controllers,
        "kafka_raft_",
        ("current_epoch", "Epoch of the quorum.", lambda c: c.raft.epoch),
        ("current_leader", "Node id of the leader, -1 without one.", _leader),
        ("high_watermark", "Offset after the last committed record.", lambda c: c.log.high_watermark),
        ("log_end_offset", "Offset after the last record of the metadata log.", lambda c: c.log.end_offset),
        ("number_of_voters", "Voters.", lambda c: len(c.raft.voters.nodes)),
    )
    about = "Brokers fenced because their session timed out, since this controller became active."
    yield from counters(controllers, "mockraft_", ("broker_sessions_timed_out", about, _sessions_timed_out))


def _shutting_down(controller: Controller) -> int:
    return sum(each.in_controlled_shutdown for each in _unfenced(controller))


def _unfenced(controller: Controller) -> list[BrokerRegistration]:
    return [broker for broker in controller.image.cluster.brokers.values() if not broker.fenced]


def _leader(controller: Controller) -> int:
    leader_id = controller.raft.leader_id
    return -1 if leader_id is None else leader_id


def _sessions_timed_out(controller: Controller) -> int:
    return 0 if controller.epoch == STANDBY else controller.sessions.timed_out


def _registration_state(broker: BrokerView) -> int:
    if broker.fenced:
        return _FENCED
    return _CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else _ACTIVE


T = TypeVar("T")

Samples = Iterable[tuple[Sequence[str], float]]
"""Values by their labels."""


def counter(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return a counter; Prometheus shows it as `<name>_total`."""
    metric = CounterMetricFamily(name, about, labels=labels)
    for values, count in samples:
        metric.add_metric(values, count)
    return metric


def gauge(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return a gauge with a value for each list of label values in `samples`."""
    metric = GaugeMetricFamily(name, about, labels=labels)
    for values, value in samples:
        metric.add_metric(values, value)
    return metric


def counters(nodes: Mapping[str, T], prefix: str, *wanted: tuple[str, str, Callable[[T], float]]) -> Iterator[Metric]:
    """Yield counters (name after the prefix, description, how to look it up) of every node."""
    for name, about, value in wanted:
        yield counter(prefix + name, about, ("node",), [((node,), value(each)) for node, each in nodes.items()])


def gauges(nodes: Mapping[str, T], prefix: str, *wanted: tuple[str, str, Callable[[T], float]]) -> Iterator[Metric]:
    """Yield gauges, given likewise."""
    for name, about, value in wanted:
        yield gauge(prefix + name, about, ("node",), [((node,), value(each)) for node, each in nodes.items()])


def latencies(counts: Mapping[str, RequestCounts]) -> Metric:
    """Return the latency histogram of all nodes and APIs, in seconds."""
    metric = HistogramMetricFamily(
        "mockraft_request_latency_seconds",
        "Time from a request to its answer, by the controller's clock; a Fetch waits for records.",
        labels=("node", "api"),
    )
    bounds = [*(f"{us / 1e6:g}" for us in BUCKETS_US), "+Inf"]
    for node, each in counts.items():
        for api, in_buckets in sorted(each.latencies.items()):
            buckets, total = [], 0
            for bound, count in zip(bounds, in_buckets, strict=True):
                total += count
                buckets.append((bound, float(total)))
            metric.add_metric((node, api), buckets, each.elapsed_us[api] / 1e6)
    return metric
