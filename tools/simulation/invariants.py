"""Invariants of a simulated cluster, one function each: AssertionError where one is violated.

`ON_CHANGE` are verified whenever the log or the role of a controller has changed, `NOW_AND_THEN` several times a
second, `AT_THE_END` once the cluster has converged. An invariant that compares with the past keeps it in
`World.memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mockraft.server.raft.states import Role
from mockraft.wire import record_batch

if TYPE_CHECKING:
    from mockraft.brokers.partitions.hosted import HostedPartition

    from .processes import BrokerProcess, ControllerProcess
    from .world import World

Invariant = Callable[["World"], None]


class BrokenError(AssertionError):
    """A violated invariant."""

    def __init__(self, invariant: str, why: str) -> None:
        super().__init__(f"{invariant}: {why}")
        self.invariant = invariant


# The quorum.


def one_leader_per_epoch(world: World) -> None:
    """KafkaRaftClient: an epoch has one leader at most."""
    leaders = world.memory(one_leader_per_epoch, dict)
    for process in _up(world):
        if process.raft.is_leader:
            first = leaders.setdefault(process.raft.epoch, process.name)
            assert first == process.name, f"{first} and {process.name} lead epoch {process.raft.epoch}"


def one_vote_per_epoch(world: World) -> None:
    """A voter gives its vote of an epoch once, over all its runs."""
    votes = world.memory(one_vote_per_epoch, dict)
    for process in _up(world):
        election = process.log.election
        if election.voted is not None:
            first = votes.setdefault((process.name, election.epoch), election.voted.id)
            assert first == election.voted.id, f"{process.name} voted twice in epoch {election.epoch}"


def epochs_never_go_back(world: World) -> None:
    """An epoch grows over all runs, and is saved before it is used."""
    epochs = world.memory(epochs_never_go_back, dict)
    for process in _up(world):
        raft, election = process.raft, process.log.election
        assert raft.epoch >= epochs.get(process.name, 0), f"{process.name} went back to epoch {raft.epoch}"
        assert (election.epoch, election.voted) == (raft.epoch, raft.voted), f"{process.name} did not save its epoch"
        epochs[process.name] = raft.epoch


def only_leaders_are_active(world: World) -> None:
    """A controller is active in the epoch that its node leads, and only once its log is committed to that epoch."""
    for process in _up(world):
        raft, epoch = process.raft, process.controller.epoch
        assert (raft.leading is not None) == (raft.role is Role.LEADER), process.name
        is_established = raft.leading is not None and raft.leading.established
        assert (epoch >= 0) == is_established, f"{process.name} is active in {epoch}, and {raft.role}"
        assert epoch < 0 or epoch == raft.epoch, f"{process.name} is active in {epoch}, and leads {raft.epoch}"


def high_watermark_never_goes_back(world: World) -> None:
    """In one run; it is never beyond the end of the log."""
    seen = world.memory(high_watermark_never_goes_back, dict)
    for process in _up(world):
        log, run = process.log, (process.name, process.lives)
        assert log.high_watermark >= seen.get(run, 0), f"{process.name} went back to {log.high_watermark}"
        assert log.high_watermark <= log.end_offset, f"{process.name}: {log.high_watermark} of {log.end_offset}"
        seen[run] = log.high_watermark


def logs_match(world: World) -> None:
    """A batch of the same offset and epoch is the same wherever it is, and so is the one before it."""
    batches, seen = world.memory(logs_match, lambda: ({}, {}))
    for process in _up(world):
        log = process.log
        position = (log.start_offset, log.end_offset, log.last_epoch)
        if seen.get(process.name) == position:
            continue
        start, end, _ = seen.get(process.name, (0, 0, 0))
        seen[process.name] = position
        begin = min(end, log.end_offset) if start == log.start_offset else log.start_offset
        data = log.read(max(begin - 8, log.start_offset), 1 << 30)
        before = -1
        for header in record_batch.read_headers(data):
            key, batch = (header.base_offset, header.leader_epoch), data[header.position : header.end]
            known, known_before = batches.setdefault(key, (batch, before))
            assert known == batch, f"{process.name} has another batch at {key}"
            assert -1 in (before, known_before) or before == known_before, f"{process.name}: before {key} is {before}"
            batches[key] = (batch, max(before, known_before))
            before = header.leader_epoch


def committed_records_are_kept(world: World) -> None:
    """A committed batch is the same on all nodes that have it as committed, and an active controller has them all."""
    checked = world.memory(committed_records_are_kept, dict)
    newest = max(process.log.election.epoch for process in world.controllers.values() if process.lives)
    for process in _up(world):
        log = process.log
        is_newest = process.leads and process.raft.epoch == newest
        if is_newest:
            assert log.end_offset >= world.committed_end, f"{process.name} is active without what is committed"
        known = world.committed_end if is_newest else log.high_watermark
        run = (process.name, process.lives, is_newest)
        begin = max(checked.get(run, 0), log.start_offset)
        if begin >= known:
            continue
        for header in record_batch.read_headers(log.read(begin, 1 << 30)):
            if header.last_offset >= known:
                break
            batch = world.committed.get(header.base_offset)
            assert batch is not None, f"{process.name} has a batch at {header.base_offset} that nobody committed"
            found = log.read(header.base_offset, 1)
            assert batch == found, f"{process.name} has another committed batch at {header.base_offset}"
            checked[run] = header.last_offset + 1


# The controller.


def leaders_are_in_sync(world: World) -> None:
    """A leader is in the ISR and unfenced (unclean elections are off), the ISR among the replicas."""
    for place, partition, _ in _changed_partitions(world, leaders_are_in_sync):
        assert {*partition.isr} <= {*partition.replicas}, f"{place}: ISR {partition.isr} of {partition.replicas}"
        assert len({*partition.isr}) == len(partition.isr), f"{place}: ISR {partition.isr}"
        assert not {*partition.isr} & {*partition.elr}, f"{place}: ISR {partition.isr}, ELR {partition.elr}"
        assert len(partition.directories) == len(partition.replicas), place
        if partition.leader != -1:
            assert partition.leader in partition.isr, f"{place}: {partition.leader} leads, ISR {partition.isr}"
            assert not world.image.cluster.brokers[partition.leader].fenced, f"{place}: fenced {partition.leader} leads"


def partition_epochs_only_grow(world: World) -> None:
    """The partition epoch grows with each change, the leader epoch with each leader."""
    for place, partition, before in _changed_partitions(world, partition_epochs_only_grow):
        if before is not None:
            assert partition.partition_epoch > before.partition_epoch, place
            assert partition.leader_epoch >= before.leader_epoch, place
            assert partition.leader == before.leader or partition.leader_epoch > before.leader_epoch, place


def fenced_brokers_lead_nothing(world: World) -> None:
    """Also after a broker was fenced, which need not change a partition."""
    brokers = world.image.cluster.brokers
    for place, partition in world.partitions().items():
        assert partition.leader == -1 or not brokers[partition.leader].fenced, f"{place}: {partition.leader}"


def heartbeating_brokers_stay_unfenced(world: World) -> None:
    """A broker is fenced when its session is over or when it asks for that, and in no other case."""
    leaderships = world.memory(heartbeating_brokers_stay_unfenced, dict)
    for process in _up(world):
        if process.leads:
            leaderships.setdefault(process.controller.epoch, (process, process.lives, process.now_ms))
    while world.fenced:
        epoch, fenced_ms, broker_id, broker_epoch = world.fenced.pop()
        process, life, since_ms = leaderships[epoch]
        asked = (process.name, life, broker_id, broker_epoch) in world.asked
        heartbeats_ms = [ms for ms in world.heartbeats[process.name, life, broker_id] if ms <= fenced_ms]
        silent_ms = fenced_ms - max([since_ms, *heartbeats_ms[-1:]])
        is_late = silent_ms >= process.config.session_timeout_ms
        assert asked or is_late, f"{process.name} fenced broker {broker_id} {silent_ms} ms after its heartbeat"


def producer_ids_are_given_once(world: World) -> None:
    """Also by different brokers and controllers."""
    assert len({*world.producer_ids}) == len(world.producer_ids), sorted(world.producer_ids)


# The brokers.


def brokers_apply_committed_records(world: World) -> None:
    """A broker's metadata is never ahead of what is committed, and never goes back in one run."""
    seen = world.memory(brokers_apply_committed_records, dict)
    for process in _running(world):
        applied, run = process.node.observer.applied_offset, (process.name, process.lives)
        assert seen.get(run, -1) <= applied < max(world.committed_end, 1), f"{process.name}: {applied}"
        seen[run] = applied


def leaders_high_watermarks_never_go_back(world: World) -> None:
    """In one leadership of a run; it is within the leader's log."""
    seen = world.memory(leaders_high_watermarks_never_go_back, dict)
    for process in _running(world):
        for key, hosted in _hosted(process):
            state = hosted.state
            if state.is_leader:
                stint = (process.name, process.lives, key, state.leader_epoch)
                assert seen.get(stint, 0) <= state.high_watermark <= state.end_offset, stint
                seen[stint] = state.high_watermark


def isr_has_acknowledged_records(world: World) -> None:
    """Each member of the committed ISR that runs has the records that acks=all was answered for."""
    partitions = world.partitions()
    for key, end_offset in world.acknowledged_ends.items():
        for process in _running(world):
            broker_id, node = process.config.broker_id, process.node
            registered = world.image.cluster.brokers.get(broker_id)
            if key not in partitions or broker_id not in partitions[key].isr or registered is None:
                continue
            log = node.logs.log(key)
            if log is not None and registered.broker_epoch == node.life.broker_epoch:
                assert log.end_offset >= end_offset, f"{process.name} ends at {log.end_offset}, not {end_offset}"


def images_are_equal_at_equal_offsets(world: World) -> None:
    """Of controllers, as far as all records are committed."""
    seen = world.memory(images_are_equal_at_equal_offsets, dict)
    for process in _up(world):
        controller = process.controller
        is_here = controller.applied_offset == world.committed_end == process.log.high_watermark
        compared = (process.lives, controller.applied_offset, controller.epoch)
        if is_here and seen.get(process.name) != compared:
            seen[process.name] = compared
            assert controller.image == world.image, f"{process.name} at {controller.applied_offset}"


# After convergence.


def acknowledged_writes_survive(world: World) -> None:
    """Topics and configs that a controller confirmed are in every image."""
    for process in _up(world):
        image = process.controller.image
        missing = world.acknowledged_topics - {*image.topics.by_name}
        assert not missing, f"{process.name} lacks topics {sorted(missing)}"
        for group, value in world.acknowledged_configs.items():
            found = image.configs.get((32, group), {})
            assert value in found.values(), f"{process.name} lacks {value} of {group}: {found}"


def acknowledged_records_survive(world: World) -> None:
    """Every replica has every record that acks=all was answered for, at its offset."""
    for record in world.acknowledged:
        topic_id = world.topic(record.topic)
        assert topic_id is not None
        for broker_id in world.partitions()[topic_id, record.partition].replicas:
            log = world.brokers[f"b{broker_id}"].node.logs.log((topic_id, record.partition))
            assert log is not None
            found = log.read(record.offset, 1, log.end_offset) if record.offset < log.end_offset else b""
            assert record.value in found, f"broker {broker_id} lacks {record}"


def replicas_agree(world: World) -> None:
    """All replicas have the same committed records."""
    for key, partition in world.partitions().items():
        logs = [world.brokers[f"b{broker_id}"].node.logs.log(key) for broker_id in partition.replicas]
        ends = [log.high_watermark for log in logs if log is not None]
        assert len(ends) == len(logs), f"{key} is not on all of {partition.replicas}"
        committed = {log.read(0, 1 << 30, min(ends)) for log in logs if log is not None}
        assert len(committed) <= 1, f"{key}: {partition.replicas} differ below {min(ends)}"


def directories_are_true(world: World) -> None:
    """The controller knows in which directory each replica is."""
    for key, partition in world.partitions().items():
        for broker_id in partition.replicas:
            found = world.brokers[f"b{broker_id}"].node.logs.directory_of(key)
            assert partition.directory(broker_id) == found, f"{key} on broker {broker_id}"


def brokers_have_the_image(world: World) -> None:
    """The metadata that brokers answer their clients from is the controller's."""
    image = world.image
    for process in _running(world):
        own = process.node.image
        assert own is not None
        for key, partition in world.partitions().items():
            found = own.partition(*key)
            assert found is not None, f"{process.name} lacks {key}"
            for field in found._fields:
                assert getattr(found, field) == getattr(partition, field), f"{process.name}: {field} of {key}"
        assert {each.name for each in own.topics.values()} == {*image.topics.by_name}, process.name
        assert own.configs == image.configs, f"{process.name}: {own.configs}, not {image.configs}"
        for broker_id, broker in image.cluster.brokers.items():
            node = own.brokers[broker_id]
            assert (node.broker_epoch, node.fenced) == (broker.broker_epoch, broker.fenced), f"{process.name}: {node}"


ON_CHANGE: tuple[Invariant, ...] = (
    one_leader_per_epoch,
    one_vote_per_epoch,
    epochs_never_go_back,
    only_leaders_are_active,
    high_watermark_never_goes_back,
    logs_match,
    committed_records_are_kept,
    leaders_are_in_sync,
    partition_epochs_only_grow,
    fenced_brokers_lead_nothing,
    heartbeating_brokers_stay_unfenced,
    isr_has_acknowledged_records,
)
NOW_AND_THEN: tuple[Invariant, ...] = (
    producer_ids_are_given_once,
    brokers_apply_committed_records,
    leaders_high_watermarks_never_go_back,
    images_are_equal_at_equal_offsets,
)
AT_THE_END: tuple[Invariant, ...] = (
    acknowledged_writes_survive,
    acknowledged_records_survive,
    replicas_agree,
    directories_are_true,
    brokers_have_the_image,
)


def _up(world: World) -> list[ControllerProcess]:
    return [process for process in world.controllers.values() if process.is_booted]


def _running(world: World) -> list[BrokerProcess]:
    return [process for process in world.brokers.values() if process.is_booted]


def _hosted(process: BrokerProcess) -> list[tuple[tuple[bytes, int], HostedPartition]]:
    replicas = process.node.replicas
    return [] if replicas is None else [*replicas.partitions.items()]


def _changed_partitions(world: World, invariant: Invariant) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the committed partitions that differ from those of the last call, with what they were then."""
    seen = world.memory(invariant, dict)
    for place, partition in world.partitions().items():
        before = seen.get(place)
        if before is not partition:
            seen[place] = partition
            yield place, partition, before
