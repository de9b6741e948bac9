"""A seeded world of one partition: three replicas, a controller that elects cleanly, and everything that goes wrong.

Metadata comes late and broker by broker, fetches and answers are lost, brokers die and come back, some without the end
of their log. Logs are lists of (leader epoch, record).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import pytest
from mockraft.brokers.partitions.partition import Assignment, CommittedIsr, IsrChange, Partition, Registered
from mockraft.wire import error_codes

BROKERS = (1, 2, 3)
LAG_TIME_MAX_MS = 400
LOST_ANSWERS = 0.2

Entry = tuple[int, int]


class Metadata(NamedTuple):
    """The content of the metadata log at one offset."""

    assignment: Assignment
    registered: dict[int, Registered]


class LateFetch(NamedTuple):
    """A fetch of a broker that has died since."""

    replica: int
    leader_epoch: int
    broker_epoch: int
    offset: int


class Broker:
    """One broker: its log outlives it, all else begins anew with each life."""

    def __init__(self, world: World, broker_id: int) -> None:
        self.world = world
        self.broker_id = broker_id
        self.log: list[Entry] = []
        self.high_watermark = 0
        self.alive = False
        self.begin(epoch=0)

    def begin(self, epoch: int) -> None:
        """A new life."""
        self.epoch = epoch
        self.inbox: deque[Metadata] = deque()
        self.answers: deque[tuple[IsrChange, CommittedIsr | int]] = deque()
        self.registered: dict[int, Registered] = {}
        self.partition = Partition(
            self.broker_id, lambda other: self.registered.get(other), lambda: self.world.min_isr, lag_time_max_ms=400
        )

    def take_metadata(self) -> None:
        """Apply the next metadata that came."""
        assignment, self.registered = self.inbox.popleft()
        known = self.partition.is_leader and assignment.partition_epoch == self.partition.partition_epoch
        if known and self.partition.pending is not None and not self.world.discards_pending:
            return
        if assignment.leader == self.broker_id:
            self.partition.lead(assignment, len(self.log), self.high_watermark, self.world.now_ms)
        else:
            self.partition.follow(assignment)
        self.carry_over()

    def carry_over(self) -> None:
        """The log's high watermark is the leader's."""
        if self.alive and self.partition.is_leader:
            self.high_watermark = self.partition.high_watermark

    def end_of_epoch(self, epoch: int) -> Entry:
        """The largest epoch up to `epoch`, and where it ends."""
        end = next((offset for offset, entry in enumerate(self.log) if entry[0] > epoch), len(self.log))
        return (self.log[end - 1][0] if end else -1), end


class Controller:
    """The controller's side: registrations, the ISR, clean elections alone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registered: dict[int, Registered] = {}
        self.assignment = Assignment(-1, 0, BROKERS, BROKERS, 0)
        self.next_epoch = 100

    def register(self, broker: Broker) -> None:
        """A broker begins a life; one that is still in the ISR from the last leaves it first."""
        self.fence(broker.broker_id)
        self.next_epoch += 1
        broker.begin(self.next_epoch)
        broker.alive = True
        self.registered[broker.broker_id] = Registered(self.next_epoch)
        broker.inbox.append(Metadata(self.assignment, dict(self.registered)))
        self.change(self.assignment.isr)

    def fence(self, broker_id: int) -> None:
        """Its session is over. The last of the ISR stays in it."""
        if broker_id in self.registered and not self.registered[broker_id].fenced:
            self.registered[broker_id] = self.registered[broker_id]._replace(fenced=True)
            left = tuple(member for member in self.assignment.isr if member != broker_id)
            self.change(left or self.assignment.isr)

    def change(self, isr: tuple[int, ...]) -> None:
        """Elect and publish."""
        now = self.assignment
        alive = [member for member in now.replicas if member in isr and self.is_alive(member)]
        leader = now.leader if now.leader in alive else alive[0] if alive else -1
        epoch = now.leader_epoch + (leader != now.leader)
        self.assignment = Assignment(leader, epoch, isr, now.replicas, now.partition_epoch + 1)
        for broker in self.world.brokers.values():
            if broker.alive:
                broker.inbox.append(Metadata(self.assignment, dict(self.registered)))

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.registered and not self.registered[broker_id].fenced

    def alter(self, sender: Broker, change: IsrChange) -> CommittedIsr | int:
        """AlterPartition, with the checks of Kafka's controller in their order."""
        now = self.assignment
        if self.registered[sender.broker_id].broker_epoch != sender.epoch:
            return error_codes.STALE_BROKER_EPOCH
        if change.leader_epoch < now.leader_epoch:
            return error_codes.FENCED_LEADER_EPOCH
        if now.leader != sender.broker_id:
            return error_codes.INVALID_REQUEST
        if change.partition_epoch < now.partition_epoch:
            return error_codes.INVALID_UPDATE_VERSION
        for member, epoch in change.isr_with_epochs:
            if not self.is_alive(member) or epoch not in (-1, self.registered[member].broker_epoch):
                return error_codes.INELIGIBLE_REPLICA
        isr = tuple(member for member, _ in change.isr_with_epochs)
        if set(isr) != set(now.isr):
            self.change(isr)
        return CommittedIsr(self.assignment.leader_epoch, self.assignment.partition_epoch, isr)


class World:
    """`step` lets one thing happen. `acknowledged` is every record that acks=all was told of, by offset.

    `discards_pending`: metadata of the epoch that a leader has already discards its pending ISR change, as in Kafka.
    """

    def __init__(self, seed: int, *, discards_pending: bool = False) -> None:
        self.discards_pending = discards_pending
        self.rng = random.Random(seed)
        self.min_isr = self.rng.choice((1, 2))
        self.now_ms = 1_000
        self.records = 0
        self.acknowledged: dict[int, int] = {}
        self.waiting: list[tuple[Broker, Partition, int, int]] = []
        self.late: list[LateFetch] = []
        self.brokers = {broker_id: Broker(self, broker_id) for broker_id in BROKERS}
        self.controller = Controller(self)
        for broker in self.brokers.values():
            self.controller.register(broker)
        steps: list[tuple[Callable[[Broker], None], int]] = [
            (self.metadata, 30),
            (self.append, 40),
            (self.fetch, 120),
            (self.shrink, 12),
            (self.alter, 30),
            (self.answer, 30),
            (self.late_fetch, 4),
            (self.die, 3),
            (self.expire, 8),
            (self.restart, 8),
        ]
        self._steps = [step for step, _ in steps]
        self._weights = [weight for _, weight in steps]

    def step(self) -> None:
        """Some time goes by and one thing happens to one broker."""
        self.now_ms += self.rng.randrange(60)
        (what,) = self.rng.choices(self._steps, self._weights)
        broker = self.rng.choice(list(self.brokers.values()))
        what(broker)
        broker.carry_over()
        self._acknowledge()

    def leaders(self) -> list[Broker]:
        """The replicas that believe that they lead."""
        return [broker for broker in self.brokers.values() if broker.alive and broker.partition.is_leader]

    def _acknowledge(self) -> None:
        still = []
        for broker, partition, end_offset, record in self.waiting:
            if broker.partition is not partition:
                continue
            done, error = partition.reached(end_offset)
            if not done:
                still.append((broker, partition, end_offset, record))
            elif error == error_codes.NONE:
                self.acknowledged[end_offset - 1] = record
        self.waiting = still

    # What can happen.

    def metadata(self, broker: Broker) -> None:
        if broker.alive and broker.inbox:
            broker.take_metadata()

    def append(self, broker: Broker) -> None:
        partition = broker.partition
        if broker.alive and partition.check_append(-1) == error_codes.NONE:
            self.records += 1
            broker.log.append((partition.leader_epoch, self.records))
            partition.appended(len(broker.log), self.now_ms)
            self.waiting.append((broker, partition, len(broker.log), self.records))

    def fetch(self, broker: Broker) -> None:
        partition = broker.partition
        leader = self.brokers.get(partition.leader)
        if not broker.alive or leader is None or leader is broker or not leader.alive:
            return
        fetch = LateFetch(broker.broker_id, partition.leader_epoch, broker.epoch, len(broker.log))
        self.late = [*self.late[-5:], fetch]
        if not self._takes(leader, fetch):
            return
        if broker.log:
            epoch, end_offset = leader.end_of_epoch(broker.log[-1][0])
            if epoch < broker.log[-1][0] or end_offset < len(broker.log):
                ours, our_end = broker.end_of_epoch(epoch)
                del broker.log[min(our_end, end_offset) if ours == epoch else our_end :]
                broker.high_watermark = min(broker.high_watermark, len(broker.log))
                return
        leader.partition.fetched(broker.broker_id, len(broker.log), 0, broker.epoch, self.now_ms)
        leader.carry_over()
        if self.rng.random() >= LOST_ANSWERS:
            broker.log += leader.log[len(broker.log) : len(broker.log) + self.rng.randrange(1, 4)]
            broker.high_watermark = max(broker.high_watermark, min(leader.high_watermark, len(broker.log)))

    def late_fetch(self, broker: Broker) -> None:
        """A fetch of a life that is over reaches a leader after all."""
        if self.late and broker.alive and broker.partition.is_leader:
            fetch = self.rng.choice(self.late)
            is_over = self.brokers[fetch.replica].epoch != fetch.broker_epoch
            if is_over and fetch.offset <= len(broker.log) and self._takes(broker, fetch):
                broker.partition.fetched(fetch.replica, fetch.offset, 0, fetch.broker_epoch, self.now_ms)

    def _takes(self, leader: Broker, fetch: LateFetch) -> bool:
        partition = leader.partition
        checked = partition.check_leader_epoch(fetch.leader_epoch)
        checked = checked or partition.check_follower(fetch.replica, fetch.leader_epoch, fetch.broker_epoch)
        return checked == error_codes.NONE

    def shrink(self, broker: Broker) -> None:
        if broker.alive:
            broker.partition.shrink(self.now_ms)

    def alter(self, broker: Broker) -> None:
        change = broker.partition.pending
        if broker.alive and change is not None and not broker.answers:
            answer = self.controller.alter(broker, change)
            if self.rng.random() >= LOST_ANSWERS:
                broker.answers.append((change, answer))

    def answer(self, broker: Broker) -> None:
        if broker.alive and broker.answers:
            change, answer = broker.answers.popleft()
            if isinstance(answer, CommittedIsr):
                broker.partition.committed(change, answer, self.now_ms)
            else:
                broker.partition.refused(change, answer)

    def die(self, broker: Broker) -> None:
        """At once. One that others can do without may lose what it had not forced to its disk."""
        if not broker.alive:
            return
        broker.alive = False
        others = [member for member in self.controller.assignment.isr if member != broker.broker_id]
        if others and self.rng.random() < 0.5:
            self.controller.fence(broker.broker_id)
            del broker.log[self.rng.randrange(len(broker.log) + 1) :]
            broker.high_watermark = min(broker.high_watermark, len(broker.log))

    def expire(self, broker: Broker) -> None:
        """The controller has not heard of a dead broker for a session."""
        if not broker.alive:
            self.controller.fence(broker.broker_id)

    def restart(self, broker: Broker) -> None:
        if not broker.alive:
            self.controller.register(broker)


@pytest.fixture
def world() -> type[World]:
    """`world(seed)`."""
    return World
