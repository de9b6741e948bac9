"""Invariants of every quorum at every moment, one class each."""

from pathlib import Path
from typing import Any

import pytest
from mockraft.server.raft.states import Role
from mockraft.wire import record_batch

from ...budgets import budget
from ..invariant import Invariant

pytestmark = pytest.mark.one_python

SEEDS = range(budget(60, 240))
VIOLENT_MS = 9_000
CALM_MS = 8_000


class OneLeaderPerEpoch(Invariant):
    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}

    def verify(self, world: Any) -> None:
        for node in world.leaders():
            assert self.leaders.setdefault(node.raft.epoch, node.config.node_id) == node.config.node_id


class OneVotePerEpoch(Invariant):
    def __init__(self) -> None:
        self.votes: dict[tuple[int, int], Any] = {}

    def verify(self, world: Any) -> None:
        for node_id, node in world.nodes.items():
            election = node.log.election
            if election.voted is not None:
                assert self.votes.setdefault((node_id, election.epoch), election.voted.id) == election.voted.id


class EpochOnlyGrows(Invariant):
    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}

    def verify(self, world: Any) -> None:
        for node_id, node in world.nodes.items():
            assert node.raft.epoch >= self.epochs.get(node_id, 0)
            election = node.log.election
            assert (election.epoch, election.voted) == (node.raft.epoch, node.raft.voted), "told too soon"
            self.epochs[node_id] = node.raft.epoch


class HighWatermarkOnlyGrows(Invariant):
    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], int] = {}

    def verify(self, world: Any) -> None:
        for node_id, node in world.nodes.items():
            life = (node_id, node.lives)
            assert node.log.high_watermark >= self.seen.get(life, 0)
            assert node.log.high_watermark <= node.log.end_offset
            self.seen[life] = node.log.high_watermark


class LogsMatch(Invariant):
    """A batch is the same wherever it is, and the batches before it too: by epoch and offset there is one history."""

    def __init__(self) -> None:
        self.batches: dict[tuple[int, int], tuple[bytes, int]] = {}
        self.seen: dict[int, tuple[int, int, int]] = {}

    def verify(self, world: Any) -> None:
        for node_id, node in world.nodes.items():
            log = node.log
            position = (log.start_offset, log.end_offset, log.last_epoch)
            if self.seen.get(node_id) == position:
                continue
            start, end, _ = self.seen.get(node_id, (0, 0, 0))
            self.seen[node_id] = position
            begin = min(end, log.end_offset) if start == log.start_offset else log.start_offset
            data = log.read(max(begin - 8, log.start_offset), 1 << 30)
            before = None
            for header in record_batch.read_headers(data):
                batch, key = data[header.position : header.end], (header.base_offset, header.leader_epoch)
                known = self.batches.setdefault(key, (batch, before if before is not None else -1))
                assert known[0] == batch, key
                assert before is None or known[1] in (-1, before), f"another epoch before {key}"
                before = header.leader_epoch


class CommittedIsNeverLost(Invariant):
    """Records known as committed by one node are on every node that knows as much, and on every leader."""

    def __init__(self) -> None:
        self.committed: dict[int, int] = {}
        self.end = 0
        self.seen: dict[int, Any] = {}

    def verify(self, world: Any) -> None:
        newest = max(node.raft.epoch for node in world.nodes.values())
        for node_id, node in world.nodes.items():
            log, leads = node.log, node.up and node.listener.leads and node.raft.epoch == newest
            state = (log.start_offset, log.high_watermark, leads)
            if self.seen.get(node_id) == state:
                continue
            self.seen[node_id] = state
            assert not leads or log.end_offset >= self.end, f"leader {node_id} lacks what is committed"
            known = self.end if leads else log.high_watermark
            for header in record_batch.read_headers(log.read(log.start_offset, 1 << 30)):
                offset = header.base_offset
                if offset >= known:
                    break
                if offset < log.high_watermark or offset in self.committed:
                    assert self.committed.setdefault(offset, header.leader_epoch) == header.leader_epoch, offset
            self.end = max(self.end, log.high_watermark)


class WhoIsToldThatItLeadsDoes(Invariant):
    def verify(self, world: Any) -> None:
        for node in world.nodes.values():
            if node.up:
                assert not node.listener.leads or node.raft.is_leader
                assert node.listener.leads == (node.raft.leading is not None and node.raft.leading.established)
                assert (node.raft.leading is not None) == (node.raft.role is Role.LEADER)


INVARIANTS = (
    OneLeaderPerEpoch,
    OneVotePerEpoch,
    EpochOnlyGrows,
    HighWatermarkOnlyGrows,
    LogsMatch,
    CommittedIsNeverLost,
    WhoIsToldThatItLeadsDoes,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_truth_holds_in_every_world(new_world: Any, tmp_path: Path, seed: int) -> None:
    world = new_world(seed, tmp_path if seed % 6 == 0 else None)
    invariants = [invariant() for invariant in INVARIANTS]

    def run(until_ms: int) -> None:
        while world.now_ms < until_ms:
            world.step()
            for invariant in invariants:
                invariant.verify(world)

    run(world.now_ms + VIOLENT_MS)
    world.calm()
    run(world.now_ms + CALM_MS)
    (leader,) = world.leaders()
    assert leader.listener.leads, "an undisturbed quorum commits"
    for node in world.nodes.values():
        assert node.raft.leader_id == leader.config.node_id
        assert node.log.end_offset >= leader.log.high_watermark - 6
    for node in world.nodes.values():
        if node.up:
            node.crash()
