"""Deliberate defects of the product, each of which violates its invariant in some seeded cluster."""

from __future__ import annotations

import dataclasses
import importlib
import os
from pathlib import Path
from typing import Any

import pytest
from mockraft.brokers.image.cluster_image import Partition as BrokersPartition
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.metadata.observer import Observer
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.partitions.partition import Partition
from mockraft.server.controller.brokers.fencing import fence
from mockraft.server.controller.brokers.heartbeat_states import Sessions
from mockraft.server.controller.brokers.log_dirs import assign_replicas_to_dirs
from mockraft.server.controller.controller import STANDBY, Controller
from mockraft.server.controller.image.settings import SettingsImage
from mockraft.server.controller.image.topics import Partition as ControllersPartition
from mockraft.server.controller.image.topics import Places
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.segments import LogStorage
from mockraft.server.controller.topics.elections import Candidates
from mockraft.server.raft.leading import Leading
from mockraft.server.raft.quorum_state import QuorumState
from mockraft.server.raft.raft import Raft
from mockraft.server.raft.states import Role, Votes
from mockraft.wire import record_batch

from tools.simulation.invariants import AT_THE_END, NOW_AND_THEN, ON_CHANGE
from tools.simulation.scripts import Event, Setup, draw
from tools.simulation.shrinking import as_test, shrink, violation

from ...budgets import sample, soak

pytestmark = pytest.mark.one_python

SEEDS = 300
"""A defect shows within these; the first is the quickest one known."""
LINES_MAX = 20


def _elected_by_itself(votes: Votes) -> int:
    return 1


def _votes_again(raft: Raft, candidate: Any, last_epoch: int, last_offset: int, *, pre_vote: bool, now_ms: int) -> bool:
    if not pre_vote and raft.role is not Role.LEADER and raft.role is not Role.CANDIDATE:
        raft.vote_for(candidate, now_ms)
    return True


def _does_not_save(log: MetadataLog, election: Any) -> None:
    """Keep the vote in memory only."""


def _stays_active(controller: Controller) -> None:
    """Take no notice of a lost leadership."""


def _commits_at_once(leading: Leading, end_offset: int) -> int:
    return end_offset if end_offset > leading.epoch_start_offset else -1


def _goes_back(quorum: QuorumState, now_ms: int) -> None:
    _update_high_watermark(quorum, now_ms)
    if quorum.log.end_offset % 7 == 0 and quorum.leading is not None and quorum.leading.established:
        quorum.log.high_watermark -= 1


_update_high_watermark = QuorumState.update_high_watermark


def _appends_in_the_first_epoch(log: MetadataLog, records: Any, now_ms: int) -> int:
    log.leader_epoch = 1
    return _append_to_log(log, records, now_ms)


_append_to_log = MetadataLog.append


def _elects_the_first(candidates: Candidates, broker_id: int) -> bool:
    return candidates.is_acceptable(broker_id)


def _keeps_its_epoch(partition: ControllersPartition, *arguments: Any) -> ControllersPartition:
    return _merge(partition, *arguments)._replace(partition_epoch=partition.partition_epoch)


_merge = ControllersPartition.merge


def _fences_only(controller: Any, broker_id: int) -> Any:
    return dataclasses.replace(fence(controller, broker_id), isr=Places())


def _forgets_contact(sessions: Sessions, broker_id: int, broker_epoch: int, now_ms: int) -> None:
    if sessions.last_contact_ms(broker_id, broker_epoch) is None:
        _touch(sessions, broker_id, broker_epoch, now_ms)


_touch = Sessions.touch


def _stays_at_the_first_block(settings: SettingsImage, record: Any, offset: int) -> None:
    settings.next_producer_id = 0


def _sends_uncommitted(raft: Raft) -> int:
    return raft.log.end_offset


def _without_followers(partition: Partition, now_ms: int) -> bool:
    advanced = partition.is_leader and partition.end_offset > partition.high_watermark
    partition.high_watermark = max(partition.high_watermark, partition.end_offset)
    return advanced


def _may_go_back(partition: Partition, now_ms: int) -> bool:
    if partition.is_leader:
        ends = [follower.end_offset for follower in partition.followers.values()]
        partition.high_watermark = max(0, min([partition.end_offset, *ends]))
    return False


def _in_sync_anywhere(partition: Partition, follower: Any) -> bool:
    return True


def _proposed_isr(partition: Partition) -> frozenset[int]:
    if partition.pending is None:
        return frozenset(partition.isr)
    return frozenset(member for member, _ in partition.pending.isr_with_epochs)


def _keeps_uncommitted(controller: Controller) -> None:
    controller.epoch = STANDBY
    controller.pending_offset = 0


def _answers_early(*arguments: Any) -> Any:
    return arguments[2]


def _acknowledges_early(partition: Partition, offset: int) -> tuple[bool, int]:
    return True, 0


def _answers_another_offset(hosted: HostedPartition, *arguments: Any, **options: Any) -> Any:
    appended = _append(hosted, *arguments, **options)
    return appended._replace(base_offset=appended.base_offset // 2)


_append = HostedPartition.append


def _appends_with_another_time(log: ReplicaLog, records: bytes) -> None:
    for batch in record_batch.read_batches(records):
        values = [value or b"" for _, value in batch.records]
        epoch = batch.leader_epoch
        data = record_batch.encode(values, base_offset=batch.base_offset, leader_epoch=epoch, timestamp_ms=0)
        _append_as_follower(log, data)


_append_as_follower = ReplicaLog.append_as_follower


def _writes_no_directory(*arguments: Any) -> Any:
    return dataclasses.replace(assign_replicas_to_dirs(*arguments), records=[])


def _keeps_directories(partition: BrokersPartition, change: Any) -> BrokersPartition:
    return _merge_on_broker(partition, change)._replace(directories=partition.directories)


_merge_on_broker = BrokersPartition.merge


def _never_in_sync(partition: Partition, follower: Any) -> bool:
    return False


def _loads_into_an_empty_log(observer: Observer, snapshot: Any) -> None:
    assert not observer.end_offset
    _load_snapshot(observer, snapshot)


_load_snapshot = Observer._load_snapshot


def _fails(*arguments: Any) -> None:
    raise ValueError("a defect")


DEFECTS: list[tuple[Any, str, Any, str, int]] = [
    (Votes, "majority", property(_elected_by_itself), "one_leader_per_epoch", 0),
    (Raft, "vote", _votes_again, "one_vote_per_epoch", 0),
    (MetadataLog, "save_election", _does_not_save, "epochs_never_go_back", 0),
    (Controller, "lost_leadership", _stays_active, "only_leaders_are_active", 4),
    (QuorumState, "update_high_watermark", _goes_back, "high_watermark_never_goes_back", 0),
    (MetadataLog, "append", _appends_in_the_first_epoch, "logs_match", 12),
    (Leading, "committed_offset", _commits_at_once, "committed_records_are_kept", 9),
    (Candidates, "may_lead", _elects_the_first, "leaders_are_in_sync", 1),
    (ControllersPartition, "merge", _keeps_its_epoch, "partition_epochs_only_grow", 1),
    ("mockraft.server.controller.brokers.fencing", "fence", _fences_only, "fenced_brokers_lead_nothing", 1),
    (Sessions, "touch", _forgets_contact, "heartbeating_brokers_stay_unfenced", 4),
    (SettingsImage, "apply_producer_ids", _stays_at_the_first_block, "producer_ids_are_given_once", 17),
    (Raft, "high_watermark", property(_sends_uncommitted), "brokers_apply_committed_records", 3),
    (Partition, "_advance_high_watermark", _may_go_back, "leaders_high_watermarks_never_go_back", 24),
    (Partition, "_advance_high_watermark", _without_followers, "isr_has_acknowledged_records", 4),
    (Partition, "_is_in_sync", _in_sync_anywhere, "isr_has_acknowledged_records", 7),
    (Partition, "maximal_isr", property(_proposed_isr), "isr_has_acknowledged_records", 42),
    (Controller, "lost_leadership", _keeps_uncommitted, "images_are_equal_at_equal_offsets", 10),
    ("mockraft.server.apis.api", "_until_committed", _answers_early, "acknowledged_writes_survive", 9),
    (Partition, "reached", _acknowledges_early, "isr_has_acknowledged_records", 4),
    (HostedPartition, "append", _answers_another_offset, "acknowledged_records_survive", 4),
    (ReplicaLog, "append_as_follower", _appends_with_another_time, "replicas_agree", 4),
    (
        *("mockraft.server.apis.assign_replicas_to_dirs", "assign_replicas_to_dirs", _writes_no_directory),
        *("directories_are_true", 1),
    ),
    (BrokersPartition, "merge", _keeps_directories, "brokers_have_the_image", 1),
    (Partition, "_is_in_sync", _never_in_sync, "the_cluster_converges", 1),
    (Observer, "_load_snapshot", _loads_into_an_empty_log, "brokers_do_not_exit", 4),
    (Controller, "check_broker_epoch", _fails, "no_handler_fails", 1),
]
"""Where, what, its replacement, the invariant, and the quickest known seed."""


def _does_not_sync(storage: LogStorage, data: bytes) -> None:
    os.pwrite(storage._file, data, storage._size)


def _does_not_sync_directory(path: Path) -> None:
    """Leave the names of new files in the page cache."""


_SEGMENTS = "mockraft.server.controller.log.segments"
DEFECTS_ON_DISK: list[tuple[Any, str, Any, str, int]] = [
    (LogStorage, "_write", _does_not_sync, "committed_records_are_kept", 2),
    (_SEGMENTS, "sync_directory", _does_not_sync_directory, "committed_records_are_kept", 8),
]
"""The same, with a data directory: a power cut shows them."""


@pytest.mark.parametrize(("owner", "name", "broken", "invariant", "seed"), sample(DEFECTS, 3))
def test_a_defect_violates_its_invariant(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, broken: Any, invariant: str, seed: int
) -> None:
    monkeypatch.setattr(importlib.import_module(owner) if isinstance(owner, str) else owner, name, broken)
    found = (violation(*draw(number)) for number in (seed, *range(SEEDS)))
    assert any(each is not None and each.invariant == invariant for each in found)


@pytest.mark.parametrize(("owner", "name", "broken", "invariant", "seed"), sample(DEFECTS_ON_DISK, 1))
def test_a_defect_of_the_disk_violates_its_invariant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owner: Any, name: str, broken: Any, invariant: str, seed: int
) -> None:
    monkeypatch.setattr(importlib.import_module(owner) if isinstance(owner, str) else owner, name, broken)
    numbers = (seed, *range(SEEDS))
    found = (violation(*draw(number), data_dir=tmp_path / str(at)) for at, number in enumerate(numbers))
    assert any(each is not None and each.invariant == invariant for each in found)


def test_every_invariant_has_a_defect() -> None:
    verified = {each.__name__ for each in (*ON_CHANGE, *NOW_AND_THEN, *AT_THE_END)}
    assert verified <= {invariant for *_, invariant, _ in DEFECTS}


@soak
def test_a_failing_seed_shrinks_to_a_short_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Sessions, "touch", _forgets_contact)
    worlds = (draw(seed) for seed in (4, *range(SEEDS)))
    setup, script = next(world for world in worlds if violation(*world) is not None)
    shrunk = shrink(setup, script, tmp_path)
    found = violation(setup, shrunk)
    assert found is not None
    assert found.invariant == "heartbeating_brokers_stay_unfenced"
    shown = as_test(setup, shrunk, found.invariant, on_disk=True)
    assert len(shrunk) < len(script)
    assert len(shown.splitlines()) <= LINES_MAX
    pasted: dict[str, Any] = {"Setup": Setup, "Event": Event, "Path": Path, "violation": violation}
    exec(shown, pasted)
    with pytest.raises(AssertionError):
        pasted[f"test_heartbeating_brokers_stay_unfenced_in_seed_{setup.seed}"](tmp_path / "pasted")
