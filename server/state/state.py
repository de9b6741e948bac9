"""The state of a controller, or quorum, as a test reads and changes it.

Reading returns views of one moment. A command makes the records that Kafka's controller would make, by the controller's
own rules, and answers the requests that wait for records. Use it in the thread of the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mockraft.server.controller.brokers import fencing, registration
from mockraft.server.controller.brokers.heartbeat import fence_one_stale_broker
from mockraft.server.controller.brokers.log_dirs import directories_offline
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.controller.image import BrokerRegistration, Topic
from mockraft.server.controller.log.state_file import state_writer
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partition_rules import begin_change
from mockraft.server.controller.topics.topics import create_topics
from mockraft.server.raft import voter_changes
from mockraft.server.raft.quorum_state import VoterChange
from mockraft.server.raft.raft import Raft
from mockraft.server.running import RunningController, most_advanced, running_node
from mockraft.server.state import reading
from mockraft.server.state.log_records import check_applies, read_log, records_at
from mockraft.server.views import (
    BrokerView,
    ConfigView,
    LogRecord,
    PartitionView,
    QuorumView,
    RecordLike,
    SnapshotView,
    TopicView,
)
from mockraft.wire import error_codes, uuids
from mockraft.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.names import did_you_mean

if TYPE_CHECKING:
    from mockraft.wire.json_form import Tree


class State:
    """The controller's state; in a quorum, that of the active controller.

    Raises ValueError, with similar names, for an unknown broker, topic or directory, and for a command that the
    controller could not carry out; RuntimeError for a command while no controller is active.
    """

    def __init__(self, nodes: Callable[[], Mapping[int, RunningController]]) -> None:
        self._nodes = nodes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of nodes {', '.join(map(str, self._nodes()))}>"

    def brokers(self) -> list[BrokerView]:
        """Return the registered brokers, by id."""
        return list(self.brokers_now())

    def brokers_now(self) -> Iterator[BrokerView]:
        """Return the brokers that are registered now, by id; each view is made when it is asked for."""
        running = self._running
        brokers = [each for _, each in sorted(running.controller.image.cluster.brokers.items())]
        return reading.broker_views(running.controller, running.clock.now_ms(), brokers)

    def broker(self, broker_id: int) -> BrokerView:
        """Return a registered broker."""
        running = self._running
        registration = self._registration(running.controller, broker_id)
        return next(reading.broker_views(running.controller, running.clock.now_ms(), [registration]))

    def topics(self) -> list[TopicView]:
        """Return the topics with their partitions, by name."""
        topics = self._running.controller.image.topics.by_name
        return [reading.topic_view(topics[name]) for name in sorted(topics)]

    def topics_now(self) -> list[Topic]:
        """Return the topics of the image by name, with copies of their partitions, to be read later."""
        topics = self._running.controller.image.topics.by_name
        return [Topic(each.name, each.topic_id, dict(each.partitions)) for _, each in sorted(topics.items())]

    def topic(self, name: str) -> TopicView:
        """Return a topic with its partitions. ValueError if there is none of this name."""
        return reading.topic_view(self._topic(self._running.controller, name))

    def features(self) -> dict[str, int]:
        """Return the finalized level of each feature, metadata.version and kraft.version included."""
        controller = self._running.controller
        return {**controller.image.features, "kraft.version": controller.log.kraft_version}

    def configs(self) -> list[ConfigView]:
        """Return the dynamic configuration of every resource that has one."""
        return [
            ConfigView(reading.CONFIG_TYPES.get(resource_type, str(resource_type)), name, dict(values))
            for (resource_type, name), values in sorted(self._running.controller.image.configs.items())
        ]

    def quorum(self) -> QuorumView:
        """Return the leader, the voters and observers, and the offset of each."""
        running = self._running
        nodes = [node.controller for node in self._nodes().values()]
        return reading.quorum_view(running.controller, nodes, running.clock.now_ms())

    def snapshots(self) -> list[SnapshotView]:
        """Return the snapshots that are kept, oldest first."""
        return [
            SnapshotView(found.id.end_offset, found.id.epoch, found.size, found.id.file_name)
            for found in self._running.controller.log.snapshots
        ]

    def metadata_log(self, from_offset: int = 0, limit: int | None = None) -> list[LogRecord]:
        """Return records of the metadata log from an offset on; a negative one counts from the end.

        Records that a snapshot replaced are missing: see `quorum().log_start_offset`.
        """
        return list(read_log(self._running.controller, from_offset, limit))

    @property
    def show_secrets(self) -> bool:
        """The controller's option: True if texts, JSON and files may have secrets."""
        return self._running.config.show_secrets

    def to_json(self) -> Tree:
        """Return everything but the log, as a JSON tree."""
        return {
            "brokers": [broker.to_json() for broker in self.brokers()],
            "topics": [topic.to_json() for topic in self.topics()],
            "features": self.features(),
            "configs": [config.to_json(show_secrets=self.show_secrets) for config in self.configs()],
            "quorum": self.quorum().to_json(),
            "snapshots": [snapshot.to_json() for snapshot in self.snapshots()],
        }

    def fence(self, broker_id: int) -> None:
        """Fence a broker; it leaves every ISR. Its next heartbeat without `wantFence` unfences it again."""

        def records(controller: Controller, now_ms: int) -> list[RecordAt]:
            found = self._registration(controller, broker_id)
            return [] if found.fenced else fencing.fence(controller, broker_id).records()

        self._commit(records, f"broker {broker_id}: fenced by a test")

    def unfence(self, broker_id: int) -> None:
        """Unfence a broker and renew its session; it may lead partitions without a leader."""

        def records(controller: Controller, now_ms: int) -> list[RecordAt]:
            found = self._registration(controller, broker_id)
            controller.sessions.touch(broker_id, found.broker_epoch, now_ms)
            return fencing.unfence(controller, broker_id) if found.fenced else []

        self._commit(records, f"broker {broker_id}: unfenced by a test")

    def expire_session(self, broker_id: int) -> None:
        """Expire a broker's session: it is fenced until its next heartbeat."""

        def expire(controller: Controller, now_ms: int) -> None:
            found = self._registration(controller, broker_id)
            controller.sessions.expire(broker_id, found.broker_epoch)
            while controller.steps is not None or controller.commit(fence_one_stale_broker(controller, now_ms), now_ms):
                controller.continue_steps(now_ms)

        self._do(expire)

    def unregister(self, broker_id: int) -> None:
        """Unregister a broker, as UnregisterBroker does. A running one goes on with a stale epoch."""

        def unregister(controller: Controller, now_ms: int) -> None:
            self._registration(controller, broker_id)
            controller.commit(registration.unregister_broker(controller, broker_id), now_ms)

        self._do(unregister)

    def fail_log_dir(self, broker_id: int, directory: str | bytes) -> None:
        """Mark a log directory as offline, as if the broker had reported it: its replicas leave the ISR."""
        directory_id = uuids.read_text(directory) if isinstance(directory, str) else directory

        def records(controller: Controller, now_ms: int) -> list[RecordAt]:
            found = self._registration(controller, broker_id)
            if directory_id not in found.log_dirs:
                known = ", ".join(map(uuids.text_of, found.log_dirs))
                raise ValueError(
                    f"broker {broker_id} has no log directory {uuids.text_of(directory_id)} online; it has: {known}"
                )
            return directories_offline(controller, broker_id, [directory_id])

        self._commit(records, f"broker {broker_id}: a log directory failed by a test")

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        *,
        replicas: Sequence[Sequence[int]] = (),
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> TopicView:
        """Create a topic, as CreateTopics does, and return it.

        `replicas` has the broker ids of each partition, its leader first; without, the controller places them. Raise
        ValueError with the controller's text when it refuses.
        """
        topic = CreatableTopic(
            name=name,
            num_partitions=-1 if replicas else partitions,
            replication_factor=-1 if replicas else replication_factor,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(broker_ids))
                for index, broker_ids in enumerate(replicas)
            ],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )

        def create(controller: Controller, now_ms: int) -> None:
            created = controller.commit(create_topics(controller, [topic]), now_ms)[name]
            if isinstance(created, ApiError):
                raise ValueError(f"topic {name!r} cannot be created: {created.message}") from created

        self._do(create)
        return self.topic(name)

    def elect(self, topic: str, partition: int, leader: int | None = None, *, unclean: bool = False) -> PartitionView:
        """Elect a replica, by default the preferred one, and return the partition after that.

        It must be unfenced and in sync; `unclean` allows any unfenced replica, which is then the only one in the ISR.
        """

        def records(controller: Controller, now_ms: int) -> list[RecordAt]:
            found = self._topic(controller, topic)
            state = found.partitions.get(partition)
            if state is None:
                raise ValueError(f"topic {topic} has no partition {partition}; it has 0 to {len(found.partitions) - 1}")
            wanted = state.replicas[0] if leader is None else leader
            if wanted == state.leader:
                return []
            election = ElectionType.UNCLEAN if unclean else ElectionType.ONLINE
            change = begin_change(
                controller,
                found,
                partition,
                election=election,
                may_lead=lambda broker_id: broker_id == wanted and controller.is_active(broker_id),
            )
            record = change.build()
            if record is None or record.record.leader != wanted:
                raise ValueError(
                    f"broker {wanted} cannot lead {topic}-{partition}: replicas {list(state.replicas)},"
                    f" ISR {list(state.isr)}, ELR {list(state.elr)}, leader {state.leader};"
                    " it must be unfenced, with its directory online, and in sync (or unclean=True)"
                )
            return [record]

        self._commit(records, f"{topic}-{partition}: elected by a test")
        return reading.partition_view(partition, self._topic(self._running.controller, topic).partitions[partition])

    def append(self, records: Iterable[RecordLike]) -> list[LogRecord]:
        """Write metadata records as one batch, and return them as they are in the log.

        Each is an object of `mockraft.wire.records`, one with its version (`RecordAt`), a `LogRecord`, or JSON:
        `{"type": "ConfigRecord", "version": 0, "record": {…}}`. Nothing is written unless all of them fit the state,
        one after the other.
        """
        given = list(records)

        def checked(controller: Controller, now_ms: int) -> list[RecordAt]:
            found = records_at(controller, given)
            check_applies(controller, found)
            return found

        base_offset = self._commit(checked, "records appended by a test", atomic=True)
        return self.metadata_log(base_offset, len(given))

    def snapshot(self) -> SnapshotView:
        """Write a snapshot of everything committed and return it; the newest one if nothing is new."""

        def write(controller: Controller, now_ms: int) -> None:
            log = controller.log
            if log.high_watermark < log.end_offset:
                raise ValueError(
                    f"records up to {log.end_offset} are not committed (high watermark {log.high_watermark});"
                    " a snapshot is of committed records"
                )
            log.write_snapshot(controller.image.to_records(controller.image.metadata_version), now_ms)

        self._do(write)
        return self.snapshots()[-1]

    def elect_controller(self, node_id: int) -> None:
        """Make a node of the quorum a candidate now; it leads once a majority has voted for it."""
        running_node(self._nodes(), node_id).script(Raft.elect)

    def resign(self) -> None:
        """Make the active controller resign; a single controller leads again after 1.5 s."""
        self._active.script(Raft.resign)

    def add_voter(self, node_id: int, port: int | None = None) -> VoterChange:
        """Begin to add a running node to the voters, as `kafka-metadata-quorum add-controller` does.

        `port` is that of the endpoint in the request, by default the node's own. `result` of the returned change is
        None until it ends, then the error code and message.
        """
        log = running_node(self._nodes(), node_id).controller.log
        listeners = tuple(each._replace(port=port or each.port) for each in log.local_voter.endpoints)
        return self._change_voters(lambda raft, now_ms: raft.add_voter(log.local_voter.key, listeners, True, now_ms))

    def remove_voter(self, node_id: int) -> VoterChange:
        """Begin to remove a voter, whatever its directory id is, as `kafka-metadata-quorum remove-controller` does."""
        voters = self._active.controller.raft.voters
        if node_id not in voters.nodes:
            raise ValueError(f"node {node_id} is not among the voters: {voters.keys_text()}")
        key = voters.nodes[node_id].key
        return self._change_voters(lambda raft, now_ms: voter_changes.remove(raft, key, now_ms))

    def save(self, path: str | Path, *, show_secrets: bool | None = None) -> Path:
        """Write the whole state to a file for `Controller(state=path)` and `Double.load`; return its path.

        Secrets (SCRAM credentials, sensitive configs) are asterisks unless `show_secrets`, by default the controller's
        option, is True: users whose credentials are hidden cannot log in to a controller that begins with the file.

        It is a snapshot in Kafka's format. In a folder it gets Kafka's file name, under which `kafka-dump-log` and
        `kafka-metadata-shell` read it. Raise OSError.
        """
        return self.saving(show_secrets=show_secrets)(Path(path))

    def saving(self, *, show_secrets: bool | None = None) -> Callable[[Path], Path]:
        """Return a function that saves the state as it is now, in any thread."""
        shown = self.show_secrets if show_secrets is None else show_secrets
        return state_writer(self._running.controller, self._running.clock.now_ms(), show_secrets=shown)

    @property
    def _running(self) -> RunningController:
        return most_advanced(self._nodes())

    @property
    def _active(self) -> RunningController:
        running = self._running
        if running.controller.epoch == STANDBY:
            raise RuntimeError("no controller is active: wait until one leads")
        return running

    def _change_voters(self, change: Callable[[Raft, int], VoterChange]) -> VoterChange:
        try:
            return self._active.script(change)
        except ApiError as error:
            raise RuntimeError(f"{error_codes.name(error.error_code)}: {error.message}") from error

    def _do(self, change: Callable[[Controller, int], None]) -> None:
        """Change the active controller, and answer the requests that wait for it."""
        running = self._active
        now_ms, events = running.clock.now_ms(), running.controller.events
        before, events.cause = events.cause, events.cause or (lambda: "a command")
        try:
            change(running.controller, now_ms)
        finally:
            events.cause = before
            running.listener.perform(running.node.tick(now_ms), now_ms)

    def _commit(
        self, records: Callable[[Controller, int], list[RecordAt]], reason: str, *, atomic: bool = False
    ) -> int:
        """Write the records; return the offset of the first."""
        base_offset = self._active.controller.log.end_offset

        def commit(controller: Controller, now_ms: int) -> None:
            controller.commit(ControllerResult(records(controller, now_ms), None, reason, atomic, cause=""), now_ms)

        self._do(commit)
        return base_offset

    def _registration(self, controller: Controller, broker_id: int) -> BrokerRegistration:
        found = controller.image.cluster.brokers.get(broker_id)
        if found is None:
            known = sorted(controller.image.cluster.brokers) or "no brokers"
            raise ValueError(f"broker {broker_id} is not registered; there are {known}")
        return found

    def _topic(self, controller: Controller, name: str) -> Topic:
        found = controller.image.topics.by_name.get(name)
        if found is None:
            raise ValueError(f"there is no topic {name!r}; {did_you_mean(name, controller.image.topics.by_name)}")
        return found
