"""Prometheus metrics of a double: those of Kafka's controller, under its JMX names, and mockraft's own.

Every double has its own registry; everything but the counts of requests is looked up on a scrape.
Source of the names: ControllerMetadataMetrics, QuorumControllerMetrics and KafkaRaftMetrics, in snake_case.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from mockraft.kafka_api.journal import Journal
from mockraft.server.admin.metric_families import counter, counters, gauge, gauges, latencies
from mockraft.server.admin.request_counts import RequestCounts
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.controller.image import BrokerRegistration
from mockraft.server.double import Double
from mockraft.server.running import RunningController
from mockraft.server.views import BrokerView
from mockraft.wire import codec_path
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

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
