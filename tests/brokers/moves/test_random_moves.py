"""Replicas moved at random beside a model, the order and the place of copies, and the recovery of logs at the start."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.moves.move import MoveRefusedError
from mockraft.brokers.moves.movers import _common_end as common_end
from mockraft.brokers.moves.movers import align, copy_piece, has_caught_up, mover_of, next_to_copy
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.moves.starting import Recovered, Recovery, ReplicaLogs, recover, settle
from mockraft.wire import record_batch
from mockraft.wire.directory_ids import LOST, MIGRATING, UNASSIGNED
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord

from ...budgets import sample
from ...rows import each_row
from ..log_dirs.conftest import batch

PATHS = ("/d0", "/d1", "/d2")
STEPS = 120
MakeBench = Callable[..., Any]


class Story:
    """A broker, what a controller would know of it, and every record that its replicas were given."""

    def __init__(self, bench: Any, rng: random.Random) -> None:
        self.rng = rng
        self.values: dict[str, list[str]] = {}
        self.known: dict[str, str] = {}
        self.adopt(bench)
        for topic in "abcd":
            self.known[topic] = rng.choice(PATHS)
            self.bench.create(topic, self.known[topic])
            self.values[topic] = []

    def adopt(self, bench: Any) -> None:
        """This is the broker from now on; its assignments wait until they are acknowledged."""
        self.bench = bench
        self.queue: dict[Any, tuple[bytes, Any]] = {}

        def assign(key: Any, directory_id: bytes, _reason: str, on_accepted: Any = None) -> None:
            self.queue[key] = (directory_id, on_accepted)

        bench.broker.directories.assign = assign

    def key(self, topic: str) -> Any:
        return topic.encode().rjust(16, b"t")[:16], 0

    def ask(self) -> None:
        topic, path = self.rng.choice(list(self.values)), self.rng.choice(PATHS)
        try:
            start_move(self.bench.broker.movers, topic, 0, path)
        except MoveRefusedError as refused:
            assert "offline" in str(refused)  # noqa: PT017

    def append(self) -> None:
        topic = self.rng.choice(list(self.values))
        log = self.bench.broker.logs.log(self.key(topic))
        if log is not None:
            value = f"{topic}{len(self.values[topic])}" + "x" * self.rng.choice((1, 1, 700_000))
            log.append_as_leader(batch(value), 0, 1000)
            self.values[topic].append(value)

    def acknowledge(self) -> None:
        """The controller takes the oldest assignment that waits."""
        if self.queue:
            key = next(iter(self.queue))
            directory_id, accepted = self.queue.pop(key)
            self.known[key[0].decode()[-1]] = self.bench.broker.directories.find(directory_id).path
            if accepted is not None:
                accepted()

    def throttle(self) -> None:
        self.bench.throttle(self.rng.choice((None, "1000000", "100000000")))

    def delete(self) -> None:
        if len(self.values) > 2:
            topic = self.rng.choice(list(self.values))
            del self.values[topic], self.known[topic]
            self.queue.pop(self.key(topic), None)
            self.bench.apply(RemoveTopicRecord(topic_id=self.key(topic)[0]))
            self.bench.broker.logs.remove(self.key(topic))
            self.bench.broker.movers.metadata_advanced()
            self.bench.broker.directories.placed.pop(self.key(topic), None)

    async def turn(self) -> None:
        """Let the movers work for a while."""
        for _ in range(self.rng.randint(1, 12)):
            await asyncio.sleep(0)

    async def restart(self, make_bench: MakeBench) -> None:
        """Killed, and started again on the same disks with what the controller knows."""
        await self.bench.broker.kill()
        self.bench.broker.logs.close()
        again = make_bench(files=self.bench.files)
        self.adopt(again)
        found = again.broker.logs.load()
        for topic, path in self.known.items():
            again.assigned(topic, path)
        settle(again.broker.movers, found.duplicates)
        again.broker.logs.mark_strays(again.broker.view.replicas)
        directories = again.broker.directories
        for held in again.broker.logs.held():
            directories.placed[held.key] = held.log_dir.directory_id
            if held.log_dir.path != self.known[held.topic] and held.key not in directories.moving:
                directories.assign(held.key, held.log_dir.directory_id, "as metadata is applied")

    async def end(self) -> None:
        """Everything that is under way comes to its end."""
        self.bench.throttle(None)
        async with asyncio.timeout(30):
            while self.bench.broker.moves or self.queue:
                self.acknowledge()
                await asyncio.sleep(0.001)

    def check(self) -> None:
        """One whole log of each replica, where the controller has it, and nothing else on the disks."""
        bench = self.bench
        assert bench.broker.directories.moving == {}
        assert bench.broker.logs.held(future=True) == []
        there = {path: {name for name in files.names() if "-" in name} for path, files in bench.files.items()}
        expected: dict[str, set[str]] = {path: set() for path in PATHS}
        for topic, values in self.values.items():
            expected[self.known[topic]].add(f"{topic}-0")
            assert bench.path_of(self.key(topic)) == self.known[topic]
            log = bench.log(self.key(topic))
            assert log.end_offset == len(values)
            read = b"".join(log.read(offset, 1) for offset in range(len(values)))
            assert [each.records[0][1] for each in record_batch.read_batches(read)] == [v.encode() for v in values]
        assert there == expected


@pytest.mark.parametrize("seed", sample(range(25), 8))
async def test_replicas_moved_at_random_are_whole_in_the_end(make_bench: MakeBench, seed: int) -> None:
    rng = random.Random(seed)
    story = Story(make_bench(), rng)
    for _ in range(STEPS):
        act = rng.choices(
            [story.ask, story.append, story.acknowledge, story.throttle, story.delete, None],
            weights=[20, 40, 20, 3, 1, 2],
        )[0]
        if act is None:
            await story.restart(make_bench)
        else:
            act()
        await story.turn()
    await story.end()
    story.check()


A, B, C = (name * 16 for name in (b"a", b"b", b"c"))
ELSEWHERE = (C, MIGRATING, UNASSIGNED, LOST)


EITHER = (False, True)
RECOVERIES: dict[str, tuple[list[ReplicaLogs], Recovered]] = {
    "both logs on good dirs go on copying": (
        [ReplicaLogs([A], B, assigned, some) for assigned in (A, *ELSEWHERE) for some in EITHER],
        Recovered(Recovery.RESUME),
    ),
    "where the controller has agreed the last records are copied and then it is swapped": (
        [ReplicaLogs([A], B, B, some) for some in EITHER],
        Recovered(Recovery.FINISH),
    ),
    "a future log alone is promoted where the controller has it or no dir is bad": (
        [
            *(ReplicaLogs([], B, B, some) for some in EITHER),
            *(ReplicaLogs([], B, assigned, False) for assigned in (A, *ELSEWHERE)),
        ],
        Recovered(Recovery.PROMOTE),
    ),
    "only a future log with an offline dir is kept": (
        [ReplicaLogs([], B, assigned, True) for assigned in (A, *ELSEWHERE)],
        Recovered(Recovery.OFFLINE),
    ),
    "no action without a future log": (
        [ReplicaLogs(current, None, A, some) for current in ([], [A]) for some in EITHER],
        Recovered(Recovery.NOTHING),
    ),
    "of two logs the one the metadata names is kept: A": (
        [ReplicaLogs([A, B], future, A, False) for future in (None, C)],
        Recovered(Recovery.KEEP_ONE, A),
    ),
    "of two logs the one the metadata names is kept: B": (
        [ReplicaLogs([A, B], future, B, False) for future in (None, C)],
        Recovered(Recovery.KEEP_ONE, B),
    ),
    "of two logs none of which the metadata names a person decides": (
        [ReplicaLogs([A, B], None, assigned, False) for assigned in ELSEWHERE],
        Recovered(Recovery.REFUSE),
    ),
}


@each_row(("found", "recovered"), RECOVERIES.values())
def test_logs_found_at_the_start_are_recovered(found: list[ReplicaLogs], recovered: Recovered) -> None:
    assert [recover(each) for each in found] == [recovered] * len(found)


SMALLEST = "polygenelubricants"
"""The hash of this word is Java's smallest integer."""


@each_row(
    ("topic", "partition", "movers", "mover"),
    [
        ("", 0, 3, 0),
        ("", 5, 3, 2),
        ("abc", 5, 4, (31 * 96_354 + 5) % 4),
        ("abc", 6, 1, 0),
        (SMALLEST, 0, 7, 0),
        (SMALLEST, 1, 10, (2**31 - 1) % 10),
    ],
)
def test_the_mover_follows_from_the_hash(topic: str, partition: int, movers: int, mover: int) -> None:
    assert mover_of(topic, partition, movers) == mover


def test_the_first_by_name_and_number_is_copied_first() -> None:
    assert next_to_copy(("b", 1), {("a", 0), ("b", 1)}) == ("b", 1)
    assert next_to_copy(("b", 1), {("b", 0), ("a", 10), ("a", 9)}) == ("a", 9)
    assert next_to_copy(None, set()) is None


def log_of(name: str, *epochs: int, high_watermark: int = 0) -> ReplicaLog:
    """A log with one record of each of these epochs."""
    log = ReplicaLog(MemoryDisk(f"/{name}"), "t-0")
    for epoch in epochs:
        log.append_as_leader(batch("x"), epoch, 0)
    log.high_watermark = high_watermark
    return log


@each_row(
    ("current", "future", "expected"),
    [
        ((), (), 0),
        ((1, 1, 1), (), 0),
        ((1, 1, 1), (1, 1), 2),
        ((1,), (1, 1, 1), 1),
        ((1, 3), (1, 2, 2), 1),
        ((1, 1, 2, 4), (1, 3, 3, 3), 1),
        ((2, 2), (1, 1, 1), 0),
    ],
)
def test_logs_agree_up_to_the_end_of_the_last_common_epoch(
    current: tuple[int, ...], future: tuple[int, ...], expected: int
) -> None:
    assert common_end(log_of("current", *current), log_of("future", *future)) == expected


@each_row(("current", "high_watermark", "expected"), [((1,), 3, 1), ((1, 1, 1), 2, 2), ((1, 1, 1), 9, 3)])
def test_of_a_log_with_newer_epochs_the_committed_records_are_kept(
    current: tuple[int, ...], high_watermark: int, expected: int
) -> None:
    future = log_of("future", 5, 5, 5, high_watermark=high_watermark)
    assert common_end(log_of("current", *current), future) == expected


def test_a_piece_brings_records_start_and_high_watermark() -> None:
    current, future = log_of("current", 1, 1, 2, 2, high_watermark=3), log_of("future", 1)
    current.advance_start_offset(1)
    assert not has_caught_up(current, future)
    assert copy_piece(current, future) == 3 * (current.size_bytes // 4)
    assert (future.start_offset, future.high_watermark, future.end_offset) == (1, 3, 4)
    assert future.leader_epochs == current.leader_epochs
    assert has_caught_up(current, future)
    assert copy_piece(current, future) == 0


@each_row("start", [5, 9])
def test_a_log_that_begins_elsewhere_is_copied_anew(start: int) -> None:
    current, future = log_of("current", 1, 1), log_of("future", 1)
    (current if start == 5 else future).truncate_fully_at(start)
    copy_piece(current, future)
    assert (future.start_offset, future.end_offset) == (current.start_offset, current.end_offset)


def test_a_log_that_begins_within_a_batch_is_copied_from_that_batch_on() -> None:
    current, future = log_of("current"), log_of("future")
    for _ in range(2):
        current.append_as_leader(batch("x", "y"), 1, 0)
    current.high_watermark = 4
    current.advance_start_offset(3)
    align(current, future)
    assert (future.start_offset, future.end_offset) == (2, 2)
    copy_piece(current, future)
    assert (future.start_offset, future.end_offset) == (3, 4)
    assert future.read(3, 1000) == current.read(3, 1000)
    assert has_caught_up(current, future)
