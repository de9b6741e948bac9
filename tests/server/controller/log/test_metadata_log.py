"""The metadata log in memory, and its batches."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.releases import release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.batches import LogBatches
from mockraft.server.controller.log.metadata_log import MetadataLog
from mockraft.server.controller.log.snapshot import EpochEndOffset, SnapshotId
from mockraft.server.controller.settings import features
from mockraft.server.raft.raft import Raft
from mockraft.wire import record_batch, scram
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord

from .conftest import topic, written_snapshot

NOOP = RecordAt(NoOpRecord(), 0)
HEAD_END = 12  # 3 control records and 9 of the bootstrap


def opened(now_ms: int = 1000, seed: int = 1, **options: Any) -> MetadataLog:
    log = Raft.open(ControllerConfig(**options), now_ms, random.Random(seed)).log
    log.append(log.bootstrap_records(), now_ms)
    return log


def all_batches(log: MetadataLog) -> list[record_batch.Batch]:
    return list(record_batch.read_batches(log.read(log.start_offset, 1 << 30)))


def test_an_empty_log_begins_as_kafkas() -> None:
    log = opened()
    control, bootstrap = all_batches(log)
    assert (control.is_control, bootstrap.is_control) == (True, False)
    assert [record_batch.control_type(key) for key, _ in control.records] == [2, 5, 6]
    assert [record for _, record in log.records()] == features.bootstrap_records(33, release())
    assert (log.start_offset, log.end_offset, log.high_watermark, log.leader_epoch) == (0, HEAD_END, HEAD_END, 1)


@pytest.mark.parametrize("level", [7, 12, 13, 25, 30, 33])
def test_the_bootstrap_is_that_of_the_metadata_version(level: int) -> None:
    log = opened(metadata_version=level, min_insync_replicas=2)
    expected = features.bootstrap_records(level, release(), min_insync_replicas=2)
    assert [record for _, record in log.records()] == expected


def test_with_kraft_version_0_no_voters_are_written() -> None:
    assert len(all_batches(opened(kraft_version=0))[0].records) == 1


def test_the_same_inputs_give_the_same_bytes() -> None:
    logs = [opened(seed=7), opened(seed=7)]
    for log in logs:
        log.append([topic(1), topic(2)], 2000)
    assert logs[0].read(0, 1 << 30) == logs[1].read(0, 1 << 30)
    assert logs[0].directory_id == logs[1].directory_id
    assert opened(seed=8).directory_id != logs[0].directory_id


def test_records_get_the_offsets_of_the_log() -> None:
    log = opened()
    assert log.append([topic(1), topic(2)], 2000) == HEAD_END
    assert log.append([topic(3)], 3000) == HEAD_END + 2
    expected = [(HEAD_END, topic(1)), (HEAD_END + 1, topic(2)), (HEAD_END + 2, topic(3))]
    assert list(log.records(HEAD_END)) == expected
    assert list(log.records(HEAD_END + 1)) == expected[1:]
    assert list(log.records())[-3:] == expected
    *_, last = all_batches(log)
    assert (last.base_offset, last.leader_epoch, last.timestamps_ms) == (HEAD_END + 2, 1, [3000])


def test_a_record_that_cannot_be_written_leaves_the_log_as_it_was() -> None:
    log = opened()
    for refused in ([topic(1), RecordAt(TopicRecord(name="x" * 40_000), 0)], []):
        with pytest.raises(WireError):
            log.append(refused, 2000)
        assert log.end_offset == HEAD_END


def test_a_follower_with_another_log_gets_the_end_of_this_one() -> None:
    log = opened()
    for offset, epoch in ((0, 0), (5, 1), (HEAD_END, 1)):
        assert log.check(offset, epoch) is None
    for offset, epoch, found in ((HEAD_END + 1, 1, (1, HEAD_END)), (HEAD_END, 9, (1, HEAD_END)), (5, 0, (0, 0))):
        assert log.check(offset, epoch) == EpochEndOffset(*found)


def test_a_snapshot_covers_the_whole_log() -> None:
    log = opened()
    log.append([topic(1)], 2000)
    assert written_snapshot(log) == SnapshotId(HEAD_END + 1, 1)
    assert [batch.is_control for batch in log.snapshots[0].batches()] == [True, False, True]
    log.append([topic(2)], 3000)
    records = list(log.records())
    assert [offset for offset, _ in records] == [HEAD_END] * 10 + [HEAD_END + 1]
    assert records[-2:] == [(HEAD_END, topic(1)), (HEAD_END + 1, topic(2))]
    assert list(log.records(HEAD_END + 1)) == [(HEAD_END + 1, topic(2))]


def test_a_follower_without_a_log_fetches_the_only_snapshot_of_an_offset() -> None:
    log = opened()
    snapshot_id = written_snapshot(log)
    assert log.write_snapshot([], 6000) is None
    assert len(log.snapshots) == 1
    assert log.check(0, 0) == snapshot_id
    assert log.check(3, 1) is None, "the log is still there"
    assert log.check(3, 0) == snapshot_id, "but not in an epoch before the snapshot's"


def test_retention_drops_the_oldest_snapshot_and_the_log_below_the_next() -> None:
    log = opened(metadata_max_retention_bytes=1)
    first = written_snapshot(log)
    assert log.start_offset == 0, "the only snapshot stays, and so does the log"
    log.append([topic(1)], 2000)
    second = written_snapshot(log)
    assert (log.start_offset, [found.id for found in log.snapshots]) == (second.end_offset, [second])
    assert log.find_snapshot(first) is None
    log.append([topic(2)], 3000)
    assert log.check(first.end_offset, 1) == second
    assert log.check(second.end_offset, 1) is None
    assert log.check(second.end_offset, 0) == second
    assert next(record_batch.read_batches(log.read(second.end_offset, 100))).base_offset == second.end_offset
    assert len(list(log.records())) == 11


@pytest.mark.parametrize("retention_ms", [-1, 60_000])
def test_retention_drops_snapshots_whose_last_record_is_too_old_once_a_minute(retention_ms: int) -> None:
    log = opened(metadata_max_retention_ms=retention_ms)
    ids = []
    for now_ms in (10_000, 20_000, 30_000):
        log.append([topic(1)], now_ms)
        ids.append(written_snapshot(log, now_ms + 5_000))
    log.clean_if_due(70_001)
    assert [found.id for found in log.snapshots] == ids, "a minute has not passed since the last snapshot"
    log.clean_if_due(99_999)
    assert [found.id for found in log.snapshots] == (ids if retention_ms < 0 else ids[2:])
    log.clean_if_due(1 << 50)
    assert log.snapshots[-1].id == ids[2], "the newest stays"


def test_memory_stays_bounded_by_retention() -> None:
    log = opened(metadata_max_retention_bytes=20_000, metadata_log_max_record_bytes_between_snapshots=5_000)
    for number in range(2_000):
        log.append([NOOP], number)
        if log.snapshot_due(number):
            written_snapshot(log, number)
    held = len(log.read(log.start_offset, 1 << 30)) + sum(found.size for found in log.snapshots)
    assert held <= 20_000 + 5_000 + 72 + log.snapshots[-1].size


def test_a_snapshot_is_due_by_bytes() -> None:
    log = opened(metadata_log_max_record_bytes_between_snapshots=1000)
    assert log.snapshot_due(1000) is None
    log.append([topic(1)] * 20, 2000)
    assert log.snapshot_due(2000) is not None
    written_snapshot(log)
    assert log.snapshot_due(5000) is None


def test_a_snapshot_is_due_by_age_when_there_is_anything_new() -> None:
    assert opened(metadata_log_max_snapshot_interval_ms=0).snapshot_due(1 << 50) is None
    log = opened(metadata_log_max_snapshot_interval_ms=100)
    assert log.snapshot_due(1099) is None
    assert log.snapshot_due(1100) is not None
    written_snapshot(log, 1100)
    assert log.snapshot_due(99_999) is None
    log.append([NOOP], 2000)
    assert log.snapshot_due(2000) is not None


def test_followers_share_one_answer_also_of_a_closed_log() -> None:
    log = opened()
    for number in range(100):
        log.append([topic(number)], 2000)
    log.close()
    first = log.read(HEAD_END, 4000)
    assert all(log.read(HEAD_END, 4000) is first for _ in range(100))
    assert log.read(log.end_offset - 1, 4000) is log.read(log.end_offset - 1, 1)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_configured_scram_users_are_in_the_bootstrap(mechanism: str) -> None:
    log = opened(scram_users=(scram.ScramUser("alice", "secret", mechanism, 5000),))
    (found,) = [at.record for _, at in log.records() if isinstance(at.record, UserScramCredentialRecord)]
    hash_name = scram.HASHES[mechanism]
    salted = scram.salted_password(hash_name, "secret", found.salt, 5000)
    assert (found.name, found.mechanism, found.iterations) == ("alice", list(scram.HASHES).index(mechanism) + 1, 5000)
    assert found.stored_key == scram.stored_key(hash_name, scram.client_key(hash_name, salted))
    assert found.server_key == scram.server_key(hash_name, salted)


# (size in bytes, records, steps by which the leader epoch rises) of each batch
batch_shapes = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=30)


def filled(shapes: list[tuple[int, int, int]]) -> tuple[LogBatches, list[tuple[int, int, bytes, int]]]:
    """The batches, and a plain list (base offset, end offset, bytes, epoch) to compare with."""
    batches, plain, epoch = LogBatches(), [], 1
    for number, (size, count, steps) in enumerate(shapes):
        epoch += steps
        data = bytes([number]) * size
        plain.append((batches.end_offset, batches.end_offset + count, data, epoch))
        batches.add(data, batches.end_offset, count, epoch)
    return batches, plain


@given(batch_shapes, st.integers(0, 400), st.data())
def test_reads_whole_batches_within_the_limit_and_at_least_one(
    shapes: list[tuple[int, int, int]], bytes_max: int, draw: st.DataObject
) -> None:
    batches, plain = filled(shapes)
    offset = draw.draw(st.integers(0, batches.end_offset - 1))
    wanted = [data for _, end, data, _ in plain if end > offset]
    sizes = itertools.accumulate(len(data) for data in wanted)
    fitting = max(sum(size <= bytes_max for size in sizes), 1)
    assert batches.read(offset, bytes_max) == b"".join(wanted[:fitting])
    assert b"".join(batches.since(offset)) == b"".join(wanted)


@given(batch_shapes, st.data())
def test_batches_are_unchanged_after_a_prefix_is_dropped(
    shapes: list[tuple[int, int, int]], draw: st.DataObject
) -> None:
    batches, plain = filled(shapes)
    end_offset, epoch = batches.end_offset, plain[-1][3]
    cut = draw.draw(st.sampled_from([base for base, *_ in plain] + [end_offset]))
    before = batches.read(cut, 1 << 30)
    batches.drop_before(cut)
    assert (batches.end_offset, batches.read(cut, 1 << 30), batches.held_bytes) == (end_offset, before, len(before))
    batches.add(b"next", end_offset, 1, epoch)
    assert batches.read(end_offset, 100) == b"next"
    assert batches.bytes_since(end_offset) == 4
    kept_epochs: dict[int, int] = {}
    for base, end, _, each in plain:
        if end > cut:
            kept_epochs.setdefault(each, base)
    kept_epochs.setdefault(epoch, end_offset)
    assert dict(batches.epochs) == kept_epochs


def test_read_at_the_end_is_empty() -> None:
    batches, _ = filled([(10, 2, 0)])
    assert batches.read(2, 100) == b""
    assert batches.read(99, 100) == b""


def test_a_single_batch_is_given_as_it_is_and_a_span_is_joined_once() -> None:
    batches = LogBatches()
    data = [bytes([number]) * 10 for number in range(4)]
    for number, each in enumerate(data):
        batches.add(each, number, 1, 1)
    assert batches.read(1, 10) is data[1]
    assert batches.read(0, 35) is batches.read(0, 39)


def test_joined_spans_are_bounded() -> None:
    batches = LogBatches()
    for number in range(200):
        batches.add(b"x" * 10, number, 1, 1)
        batches.read(0, 1 << 20)
    assert len(batches._joined) <= 16


def test_the_end_of_an_epoch_is_where_a_higher_one_begins() -> None:
    batches, _ = filled([(1, 3, 0), (1, 2, 2), (1, 4, 1)])  # epoch 1: 0-2, epoch 3: 3-4, epoch 4: 5-8
    assert batches.epochs == [(1, 0), (3, 3), (4, 5)]
    assert batches.end_of_epoch(0) == (0, 0)
    assert batches.end_of_epoch(1) == (1, 3)
    assert batches.end_of_epoch(2) == (1, 3)
    assert batches.end_of_epoch(3) == (3, 5)
    assert batches.end_of_epoch(4) == (4, 9)
    assert batches.end_of_epoch(5) is None


def test_restarts_at_another_offset() -> None:
    batches, _ = filled([(10, 2, 0)])
    batches.restart_at(50)
    assert (batches.end_offset, batches.held_bytes, batches.epochs) == (50, 0, [])
    batches.add(b"abc", 50, 1, 7)
    assert batches.read(50, 1) == b"abc"


def test_truncating_at_the_end_changes_nothing() -> None:
    batches, _ = filled([(5, 1, 0), (7, 2, 0)])
    batches.truncate(batches.end_offset)
    assert (batches.end_offset, batches.read(0, 1 << 20)) == (3, bytes(5) + bytes([1]) * 7)
