"""A simulated cluster in virtual time: a quorum of controllers, brokers with disks, a client and a faulty network.

Everything that happens is an event of a script, and each event draws from a generator of its own: without one of them
the others happen as before. At the end of the script all faults end, and the cluster must converge.
"""

from __future__ import annotations

import heapq
import random
import struct
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from mockraft.brokers.config import draw_config
from mockraft.brokers.lifecycle import End
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.partition import Assignment
from mockraft.kafka_api.journal.exchange import Exchange
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.image import Image, Partition
from mockraft.wire import api_keys, metadata_log_frame, record_batch, uuids
from mockraft.wire.connection import parse_request
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.record_batch import Batch
from mockraft.wire.records.no_op_record import NoOpRecord

from .client import Client
from .invariants import AT_THE_END, NOW_AND_THEN, ON_CHANGE, BrokenError, Invariant
from .network import Network
from .processes import BrokerProcess, ControllerProcess, Process
from .scripts import ACTIONS, Event, Setup
from .storage import CachedDisk, PageCache

START_MS = 1_700_000_000_000
LOOK_MS = 250
SESSION_TIMEOUT_MS = 3_000
HEARTBEAT_INTERVAL_MS = 800
LAG_TIME_MAX_MS = 1_500
HEARTBEAT = struct.pack(">h", api_keys.BROKER_HEARTBEAT)
FETCH_BYTES_MAX = 100
"""One batch at a time: followers take a while to catch up."""
CONVERGES_MS = 60_000
FIRST_CONTROLLER = 100


_lead = HostedPartition.lead


def _lead_unless_a_change_is_pending(hosted: HostedPartition, assignment: Assignment, now_ms: int) -> None:
    state = hosted.state
    if not (state.is_leader and state.pending and assignment.partition_epoch == state.partition_epoch):
        _lead(hosted, assignment, now_ms)


class Record(NamedTuple):
    """A record that was acknowledged with acks=all."""

    topic: str
    partition: int
    offset: int
    value: bytes


class World:
    """`run` lets a script happen and verifies the invariants. Attributes are what invariants look at.

    Logs of controllers are in memory, or in `data_dir`; then `page_cache` has what they synced.

    `committed` are all batches ever committed, by base offset, `image` is their outcome, `committed_end` their end and
    `last_change` the offset of the last record that changes anything.
    `acknowledged_topics`, `acknowledged_configs`, `acknowledged` and `producer_ids` were confirmed to the client.
    `heartbeats` are the times of those that controllers accepted, by controller, run and broker, `asked` those
    who asked to be fenced, and `fenced` the (leader epoch, time, broker, broker epoch) that were and wait for a look.
    """

    def __init__(self, setup: Setup, data_dir: Path | None = None, page_cache: PageCache | None = None) -> None:
        self.setup = setup
        self.page_cache = page_cache or PageCache()
        self.now_ms = START_MS
        self.network = Network(self)
        self.committed: dict[int, bytes] = {}
        self.committed_end = 0
        self.image = Image()
        self.last_change = 0
        self.acknowledged_topics: set[str] = set()
        self.acknowledged_configs: dict[str, str] = {}
        self.acknowledged: list[Record] = []
        self.acknowledged_ends: dict[tuple[bytes, int], int] = {}
        self.producer_ids: list[int] = []
        self.heartbeats: dict[tuple[str, int, int], list[int]] = defaultdict(list)
        self.asked: set[tuple[str, int, int, int]] = set()
        self.fenced: list[tuple[int, int, int, int]] = []
        self.failures: list[str] = []
        self.is_healed = False
        self._memories: dict[Invariant, Any] = {}
        self._positions: dict[str, tuple[object, ...]] = {}
        self._agenda: list[tuple[int, int, Process | None, int, Callable[[], object]]] = []
        self._scheduled = 0
        self.controllers = {
            name: ControllerProcess(self, name, config) for name, config in self._controller_configs(data_dir).items()
        }
        self.brokers = {name: self._broker(number) for number, name in enumerate(setup.broker_names, 1)}
        self.client = Client(self, "client")
        self.processes: dict[str, Process] = {**self.controllers, **self.brokers, "client": self.client}
        for process in self.processes.values():
            process.start()
        self.at(self.now_ms + LOOK_MS, self._look)

    # The script.

    def run(self, script: list[Event], *, until_ms: int | None = None) -> None:
        """Let the events happen, then heal everything and wait until the cluster has converged.

        BrokenError is raised by the first invariant that is violated. `until_ms` ends the run early, after the start.
        Kafka's rule that can lose acknowledged records is left out: see docs/explanation/decisions/kafka-quirks.md.
        """
        with patch.object(HostedPartition, "lead", _lead_unless_a_change_is_pending):
            self._run_script(script, until_ms)

    def _run_script(self, script: list[Event], until_ms: int | None) -> None:
        for event in script:
            self.at(START_MS + event.at_ms, partial(ACTIONS[event.action], self, *event.arguments))
        end_ms = START_MS + max([self.setup.lasts_ms, *(event.at_ms for event in script)])
        self._run(end_ms if until_ms is None else min(end_ms, START_MS + until_ms))
        if until_ms is not None and START_MS + until_ms <= end_ms:
            return
        self._heal()
        while (left := self.not_converged()) and self.now_ms < end_ms + CONVERGES_MS:
            self._run(self.now_ms + LOOK_MS)
        if left:
            raise BrokenError("the_cluster_converges", left)
        for invariant in (*ON_CHANGE, *NOW_AND_THEN, *AT_THE_END):
            self._verify(invariant)

    def close(self) -> None:
        """End all processes."""
        for process in self.processes.values():
            process.kill()

    def at(
        self, when_ms: int, call: Callable[[], object], process: Process | None = None, life: int | None = None
    ) -> None:
        """Schedule a call; one for a run of a process is dropped with it, and waits while it is paused."""
        self._scheduled += 1
        heapq.heappush(self._agenda, (when_ms, self._scheduled, process, life or 0, call))

    def memory(self, invariant: Invariant, empty: Callable[[], Any]) -> Any:
        """Return what an invariant remembers of this world."""
        if invariant not in self._memories:
            self._memories[invariant] = empty()
        return self._memories[invariant]

    @property
    def elapsed_ms(self) -> int:
        """The time since the start."""
        return self.now_ms - START_MS

    def acknowledge(self, topic: str, partition: int, offset: int, value: bytes) -> None:
        """Note a record that acks=all was answered for."""
        self.acknowledged.append(Record(topic, partition, offset, value))
        topic_id = self.topic(topic)
        assert topic_id is not None
        ends = self.acknowledged_ends
        ends[topic_id, partition] = max(ends.get((topic_id, partition), 0), offset + 1)

    def _run(self, until_ms: int) -> None:
        agenda = self._agenda
        while agenda and agenda[0][0] <= until_ms:
            when_ms, _, process, life, call = heapq.heappop(agenda)
            self.now_ms = max(self.now_ms, when_ms)
            if process is not None:
                if not process.is_up or process.lives != life:
                    continue
                if process.paused_until_ms:
                    process.held.append((life, call))
                    continue
            call()
        self.now_ms = until_ms

    def _look(self) -> None:
        for invariant in NOW_AND_THEN:
            self._verify(invariant)
        self.at(self.now_ms + LOOK_MS, self._look)

    def _verify(self, invariant: Invariant) -> None:
        try:
            invariant(self)
        except AssertionError as violation:
            raise BrokenError(invariant.__name__, str(violation)) from violation

    def changed(self, process: Process) -> None:
        """Verify the invariants of the quorum if a controller's log or role has changed."""
        if isinstance(process, BrokerProcess):
            if process.is_up and process.node.end is not None:
                self._broker_ended(process)
            return
        if not isinstance(process, ControllerProcess) or not process.is_up:
            return
        log, raft = process.log, process.raft
        position = (log.end_offset, log.high_watermark, raft.changes, raft.epoch, raft.voted, process.controller.epoch)
        if self._positions.get(process.name) == position:
            return
        self._positions[process.name] = position
        self._take_committed(process)
        for invariant in ON_CHANGE:
            self._verify(invariant)
        if self.failures:
            raise BrokenError("no_handler_fails", self.failures[0])

    def _broker_ended(self, process: BrokerProcess) -> None:
        end = process.node.end
        assert end is not None
        if end.is_failure and end not in (End.ALL_LOG_DIRS_FAILED, End.METADATA_LOG_DIR_FAILED):
            raise BrokenError("brokers_do_not_exit", f"{process.name}: {process.node.end_reason}")
        process.kill()

    def journaled(self, process: ControllerProcess) -> Callable[[Any], None]:
        """Return a listener of a controller's journal: failures of its handlers, and heartbeats."""

        def entered(entry: Any) -> None:
            failure = getattr(entry, "failure", None) or getattr(entry, "traceback", None)
            if failure is not None:
                self.failures.append(f"{process.name}: {failure}")
            if isinstance(entry, Exchange) and entry.api == "BrokerHeartbeat" and entry.error_code == 0:
                self.heartbeats[process.name, process.lives, entry.request.broker_id].append(entry.received_ms)

        return entered

    def _take_committed(self, process: ControllerProcess) -> None:
        """Add what a controller is the first to have as committed."""
        log = process.log
        while self.committed_end < log.high_watermark and self.committed_end in log.appended:
            data, end_offset = log.appended[self.committed_end]
            if end_offset > log.high_watermark:
                break
            self.committed[self.committed_end] = data
            self.committed_end = end_offset
            (batch,) = record_batch.read_batches(data)
            if not batch.is_control:
                self._apply_committed(batch)

    def received(self, process: ControllerProcess, data: bytes) -> None:
        """Note a heartbeat that asks to be fenced: whoever sent it may be gone before it is answered."""
        if data[4:6] == HEARTBEAT:
            request = parse_request(data[4:])
            heartbeat, _ = BrokerHeartbeatRequest.read_from(request.frame, request.api_version, request.body_offset)
            if heartbeat.want_fence or heartbeat.want_shut_down or heartbeat.offline_log_dirs:
                self.asked.add((process.name, process.lives, heartbeat.broker_id, heartbeat.broker_epoch))

    def _apply_committed(self, batch: Batch) -> None:
        brokers = self.image.cluster.brokers
        unfenced = {number: broker.broker_epoch for number, broker in brokers.items() if not broker.fenced}
        for offset, (_, value) in enumerate(batch.records, batch.base_offset):
            record = metadata_log_frame.decode(value or b"").record
            self.image.apply(record, offset)
            if not isinstance(record, NoOpRecord):
                self.last_change = offset
        for number, epoch in unfenced.items():
            if number in brokers and brokers[number].fenced and brokers[number].broker_epoch == epoch:
                self.fenced.append((batch.leader_epoch, batch.timestamps_ms[0], number, epoch))

    # Faults.

    def later(self, ms: int, call: Callable[[], object]) -> None:
        """Schedule the end of a fault; it ends earlier when everything is healed."""
        self.at(self.now_ms + ms, lambda: self.is_healed or call())

    def _heal(self) -> None:
        self.is_healed = True
        self.network.heal()
        for process in self.processes.values():
            if isinstance(process, BrokerProcess) and process.must_start_again:
                process.kill()
            process.start()

    # State.

    def active(self) -> list[ControllerProcess]:
        """Return the controllers that believe that they are active."""
        return [process for process in self.controllers.values() if process.leads]

    def topic(self, name: str) -> bytes | None:
        """Return the id of a committed topic."""
        found = self.image.topics.by_name.get(name)
        return None if found is None else bytes(found.topic_id)

    def partitions(self) -> dict[tuple[bytes, int], Partition]:
        """Return all committed partitions by topic id and number."""
        return {
            (topic.topic_id, number): partition
            for topic in self.image.topics.by_id.values()
            for number, partition in topic.partitions.items()
        }

    def not_converged(self) -> str:
        """Return what is still missing, "" once the cluster is as it should be without faults."""
        active = self.active()
        if len(active) != 1:
            return f"{len(active)} active controllers"
        log = active[0].log
        if log.high_watermark < log.end_offset:
            return "uncommitted records"
        for controller in self.controllers.values():
            if controller.raft.leader_id != active[0].config.node_id:
                return f"{controller.name} does not follow"
            if controller.controller.applied_offset != log.high_watermark:
                return f"{controller.name} is behind"
        for number, name in enumerate(self.setup.broker_names, 1):
            node, registered = self.brokers[name].node, self.image.cluster.brokers.get(number)
            if registered is None or registered.fenced or registered.broker_epoch != node.life.broker_epoch:
                return f"{name} is not registered, or fenced"
            if node.observer.applied_offset < self.last_change:
                return f"{name} is behind"
            if node.directories.assignments.queued or node.directories.waiting:
                return f"{name} has replicas without a directory"
        for (topic_id, number), partition in self.partitions().items():
            # Kafka never ends a reassignment that removes a replica which is still being added.
            is_moving = partition.is_reassigning and not {*partition.adding_replicas} & {*partition.removing_replicas}
            if set(partition.isr) != set(partition.replicas) or partition.leader == -1 or is_moving:
                return f"{uuids.text_of(topic_id)}-{number}: {partition}"
            for replica in partition.replicas:
                replicas = self.brokers[f"b{replica}"].node.replicas
                hosted = None if replicas is None else replicas.hosted((topic_id, number))
                if hosted is None or hosted.state.partition_epoch != partition.partition_epoch:
                    return f"b{replica} has not applied {uuids.text_of(topic_id)}-{number}"
        return ""

    # The processes.

    def _controller_configs(self, data_dir: Path | None) -> dict[str, ControllerConfig]:
        setup = self.setup
        rng = random.Random(f"{setup.seed} configs")
        numbers = range(1, setup.controllers + setup.observers + 1)
        voters = [f"{FIRST_CONTROLLER + n}@c{n}:9093" for n in numbers[: setup.controllers]]
        with_ids = [f"{voter}:{uuids.text_of(rng.randbytes(16))}" for voter in voters]
        servers = ",".join(f"c{n}:9093" for n in numbers[: setup.controllers])
        return {
            f"c{n}": ControllerConfig(
                node_id=FIRST_CONTROLLER + n,
                host=f"c{n}",
                port=9093,
                data_dir=None if data_dir is None else data_dir / f"c{n}",
                metadata_log_fsync=True,
                controller_quorum_voters=",".join(voters) if setup.static_voters else None,
                initial_controllers=None if setup.static_voters else ",".join(with_ids),
                controller_quorum_bootstrap_servers=servers if setup.bootstrap_servers else None,
                metadata_version=setup.metadata_version,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                min_insync_replicas=setup.min_insync_replicas,
                metadata_log_max_record_bytes_between_snapshots=setup.snapshot_bytes,
                metadata_max_retention_bytes=1 if setup.snapshot_bytes < 10_000 else 10_000_000,
                leader_imbalance_check_interval_seconds=2,
            )
            for n in numbers
        }

    def _broker(self, number: int) -> BrokerProcess:
        name, setup = f"b{number}", self.setup
        paths = tuple(f"/{name}/d{index}" for index in range(setup.log_dirs))
        disks = {path: CachedDisk(path) for path in paths}
        config = draw_config(
            number,
            next(iter(self.controllers.values())).config.cluster_id,
            tuple((controller, 9093) for controller in self.controllers),
            random.Random(f"{setup.seed} {name}"),
            log_dir_paths=paths,
            open_disk=disks.__getitem__,
            host=name,
            port=9092,
            serve_clients=True,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            properties={
                "replica.lag.time.max.ms": str(LAG_TIME_MAX_MS),
                "replica.fetch.backoff.ms": "100",
                "replica.fetch.max.bytes": str(FETCH_BYTES_MAX),
                "min.insync.replicas": str(setup.min_insync_replicas),
            },
        )
        return BrokerProcess(self, name, config, disks)
