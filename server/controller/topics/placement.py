"""Placement of a new partition's replicas, in stripes over racks (Kafka's StripedReplicaPlacer)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.topics.racks import Rack
from mockraft.wire import directory_ids, error_codes

if TYPE_CHECKING:
    from random import Random

    from mockraft.server.controller.context import ControllerContext


def default_dir(controller: ControllerContext, broker_id: int) -> bytes:
    """Return the directory of a new replica on this broker: Kafka's ClusterDescriber.defaultDir, or a proposal's."""
    registration = controller.image.cluster.brokers.get(broker_id)
    if registration is not None and controller.has(Behaviour.DEFAULT_DIR_IS_NOT_CORDONED):
        for directory_id in registration.log_dirs:
            if directory_id not in (registration.cordoned_log_dirs or ()):
                return directory_id
    found = controller.image.cluster.default_dir(broker_id)
    if controller.has(Behaviour.NEW_REPLICAS_ARE_UNASSIGNED):
        found = directory_ids.UNASSIGNED
    if found == directory_ids.UNASSIGNED and controller.has(Behaviour.UNASSIGNED_DIR_IS_ZERO):
        return directory_ids.MIGRATING
    return found


def place(
    usable: Sequence[Rack], partitions: int, replication_factor: int, rng: Random, *, names_cordoning: bool = True
) -> list[list[int]]:
    """Return replicas for each of `partitions` new partitions on the usable brokers, the preferred leader first.

    ApiError INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    racks = _RackList(usable, rng)
    if replication_factor <= 0:
        raise invalid_factor(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if racks.unfenced_brokers == 0:
        cordoned = ", or have all their log directories cordoned" if names_cordoning else ""
        raise invalid_factor(f"All brokers are currently fenced{cordoned}.")
    if replication_factor > racks.total_brokers:
        cordoned = " or some brokers have all their log directories cordoned" if names_cordoning else ""
        raise invalid_factor(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{racks.total_brokers} broker(s) are registered{cordoned}."
        )
    return [racks.place(replication_factor) for _ in range(partitions)]


def invalid_factor(message: str) -> ApiError:
    """Return an INVALID_REPLICATION_FACTOR error."""
    return ApiError(error_codes.INVALID_REPLICATION_FACTOR, message)


class _BrokerList:
    """Brokers in a ring: each epoch begins one further and returns every broker once."""

    def __init__(self, brokers: Sequence[int], rng: Random) -> None:
        self.brokers = brokers
        self.offset = rng.randrange(len(self.brokers)) if self.brokers else 0
        self.handed_out = 0
        self.epoch = 0

    def next(self, epoch: int) -> int | None:
        if not self.brokers:
            return None
        if self.epoch != epoch:
            self.epoch = epoch
            self.handed_out = 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.handed_out == len(self.brokers):
            return None
        broker = self.brokers[(self.handed_out + self.offset) % len(self.brokers)]
        self.handed_out += 1
        return broker

    def shuffle(self, rng: Random) -> None:
        shuffled = list(self.brokers)
        rng.shuffle(shuffled)
        self.brokers = shuffled


class _Rack:
    def __init__(self, rack: Rack, rng: Random) -> None:
        self.fenced = _BrokerList(rack.fenced, rng)
        self.unfenced = _BrokerList(rack.unfenced, rng)

    def next(self, epoch: int) -> int | None:
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class _RackList:
    """Racks in a ring: each partition begins one rack further."""

    def __init__(self, usable: Sequence[Rack], rng: Random) -> None:
        self.racks = [_Rack(rack, rng) for rack in usable]
        self.unfenced_brokers = sum(len(rack.unfenced) for rack in usable)
        self.total_brokers = self.unfenced_brokers + sum(len(rack.fenced) for rack in usable)
        self.rng = rng
        self.offset = rng.randrange(len(self.racks)) if self.racks else 0
        self.epoch = 0

    def place(self, replication_factor: int) -> list[int]:
        # With one unfenced broker there is no choice, and a new epoch 0 each time would not advance.
        if self.epoch == self.unfenced_brokers > 1:
            self._shuffle()
            self.epoch = 0
        if self.offset == len(self.racks):
            self.offset = 0
        leader_rack, leader = self._leader()
        replicas = [leader]
        rack = self.offset
        has_skipped_leader_rack = False
        while len(replicas) < replication_factor:
            if rack == leader_rack and not has_skipped_leader_rack:
                has_skipped_leader_rack = True
            else:
                broker = self.racks[rack].next(self.epoch)
                if broker is not None:
                    replicas.append(broker)
            rack = (rack + 1) % len(self.racks)
        self.epoch += 1
        self.offset += 1
        return replicas

    def _leader(self) -> tuple[int, int]:
        rack = self.offset
        while True:
            broker = self.racks[rack].unfenced.next(self.epoch)
            if broker is not None:
                return rack, broker
            rack = (rack + 1) % len(self.racks)

    def _shuffle(self) -> None:
        self.rng.shuffle(self.racks)
        for rack in self.racks:
            rack.fenced.shuffle(self.rng)
            rack.unfenced.shuffle(self.rng)
