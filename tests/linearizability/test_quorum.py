"""Acknowledged changes of a quorum of three are linearizable, whatever happens to its nodes and links."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from mockraft import Quorum
from mockraft.kafka.child_process import wait_until
from mockraft.testing.quorum import SyncQuorum

from ..budgets import budget
from ..rows import each_row
from .clients import Clients

pytestmark = pytest.mark.one_python

FAULTS_PER_SEED = 7
FETCH_TIMEOUT_MS = 400
FEW = 20


class Faults:
    """Faults of one quorum, each undone once clients have made progress without the node."""

    def __init__(self, quorum: SyncQuorum, clients: Clients, rng: random.Random) -> None:
        self._quorum = quorum
        self._clients = clients
        self._rng = rng

    def leader(self) -> int:
        return self._quorum.wait_for_leader()

    def standby(self) -> int:
        leader = self.leader()
        return self._rng.choice([node_id for node_id in self._quorum.node_ids if node_id != leader])

    def kill_the_leader(self) -> None:
        self._kill(self.leader())

    def kill_a_standby(self) -> None:
        self._kill(self.standby())

    def cut_off_the_leader(self) -> None:
        self._cut_off(self.leader())

    def cut_off_a_standby(self) -> None:
        self._cut_off(self.standby())

    def resign(self) -> None:
        self._quorum.resign()

    def elect_a_standby(self) -> None:
        self._quorum.elect(self.standby(), timeout_s=60)

    def kill_the_leader_while_a_standby_is_behind(self) -> None:
        leader, behind = self.leader(), self.standby()
        self._quorum.partition(behind)
        self._clients.wait_for_progress(FEW)
        self._quorum.kill(leader)
        self._quorum.heal()
        self._clients.wait_for_progress(FEW)
        self._quorum.restart(leader)

    def lose_the_majority(self) -> None:
        """The leader alone, and one standby killed: nothing can be committed until the other standby is back."""
        leader, killed = self.leader(), self.standby()
        self._quorum.kill(killed)
        self._quorum.partition(leader)
        wait_until(lambda: self._quorum.active is None, 60, "the leader to resign")
        self._quorum.heal()
        self._clients.wait_for_progress(FEW)
        self._quorum.restart(killed)

    def _kill(self, node_id: int) -> None:
        self._quorum.kill(node_id)
        self._clients.wait_for_progress(FEW)
        self._quorum.restart(node_id)

    def _cut_off(self, node_id: int) -> None:
        self._quorum.partition(node_id)
        self._clients.wait_for_progress(FEW)
        wait_until(lambda: self._quorum.active != node_id, 60, "a leader that reaches a majority")
        self._quorum.heal()


KINDS: tuple[Callable[[Faults], None], ...] = (
    Faults.kill_the_leader,
    Faults.kill_a_standby,
    Faults.cut_off_the_leader,
    Faults.cut_off_a_standby,
    Faults.resign,
    Faults.elect_a_standby,
    Faults.kill_the_leader_while_a_standby_is_behind,
    Faults.lose_the_majority,
)


@each_row("seed", range(budget(1, 100)))
def test_acknowledged_changes_are_linearizable(seed: int) -> None:
    rng = random.Random(seed)
    with Quorum.sync(
        3,
        seed=seed,
        session_timeout_ms=600_000,
        controller_quorum_fetch_timeout_ms=FETCH_TIMEOUT_MS,
        controller_quorum_election_timeout_ms=FETCH_TIMEOUT_MS // 2,
        controller_quorum_election_backoff_max_ms=FETCH_TIMEOUT_MS // 2,
    ) as quorum:
        clients = Clients(quorum.bootstrap.split(","), quorum.cluster_id, seed, may_be_stale=True)
        faults = Faults(quorum, clients, rng)
        with clients.running():
            for fault in rng.sample(KINDS, FAULTS_PER_SEED):
                fault(faults)
                clients.wait_for_progress(FEW)
    assert clients.violations() == ""
