"""Which directory each replica of a broker lies in, and that the controller knows it (KIP-858, KIP-1066)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from mockraft.brokers import lifecycle
from mockraft.brokers.assignments import Assignments, ReplicaKey
from mockraft.brokers.channel import ControllerChannel, NotSentError
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.log_dirs.placement import choose
from mockraft.wire import client, error_codes

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker

RETRY_TIMEOUT_MS = 60_000
DIRECTORIES_FROM = 17


class Directories:
    """The part of a broker that places replicas, reports where they lie and hears which directories are cordoned.

    `placed` is the directory uuid of each replica by (topic id, partition).
    """

    def __init__(self, broker: SimulatedBroker) -> None:
        self.placed: dict[ReplicaKey, bytes] = {}
        self.assignments = Assignments()
        self._broker = broker
        config = broker.config
        self._channel = ControllerChannel(
            str(config.broker_id), broker.controller, RETRY_TIMEOUT_MS, config.security, config.messages
        )
        self._cordoned_seen = ("", 0)

    def start(self) -> None:
        """Nothing to do: replicas are placed as the metadata names them."""

    def metadata_advanced(self) -> None:
        """Place what came, forget what went, hear which directories are cordoned."""
        self._channel.controller_moved()
        view = self._broker.view
        for key in view.take_changed():
            self._place(key)
        if (view.cordoned_log_dirs, view.metadata_version) != self._cordoned_seen:
            self._cordoned_changed()

    def state_changed(self, state: BrokerState) -> None:
        """From RECOVERY on the controller is told which directories are cordoned."""
        if state is BrokerState.RECOVERY:
            self._cordoned_changed()

    async def close(self) -> None:
        """Close the connection that assignments go over."""
        await self._channel.close()

    def _cordoned_changed(self) -> None:
        broker = self._broker
        value = broker.view.cordoned_log_dirs
        self._cordoned_seen = (value, broker.view.metadata_version)
        if broker.life.cordoned_dirs is None:
            return
        paths = {path.strip() for path in value.split(",")}
        cordoned = frozenset(d.directory_id for d in broker.config.log_dirs if value == "*" or d.path in paths)
        if cordoned != broker.life.cordoned_dirs:
            broker.happen(lifecycle.LogDirsCordoned(cordoned))

    def _place(self, key: ReplicaKey) -> None:
        """Give a replica its directory, and tell the controller when the metadata says another one or none."""
        broker = self._broker
        replica = broker.view.replicas.get(key)
        if replica is None:
            self.placed.pop(key, None)
            return
        ours = {log_dir.directory_id for log_dir in broker.config.log_dirs}
        if key not in self.placed:
            if replica.directory in ours:
                self.placed[key] = replica.directory
                return
            chosen = choose(
                broker.config.log_dirs,
                Counter(self.placed.values()),
                broker.life.offline_dirs,
                broker.life.cordoned_dirs or (),
            )
            if chosen is None:
                return
            self.placed[key] = chosen.directory_id
        if replica.directory != self.placed[key] and broker.view.metadata_version >= DIRECTORIES_FROM:
            self.assignments.add(key, self.placed[key], _now_ms())
            self._schedule_assignments()

    def _schedule_assignments(self) -> None:
        due_ms = self.assignments.due_ms
        if due_ms is not None and not self._broker.stopped.is_set():
            self._broker.set_timer("assignments", due_ms - _now_ms(), self._broker.start_task, self._assign)

    async def _assign(self) -> None:
        broker = self._broker
        registration = broker.view.registration
        epoch = registration.broker_epoch if registration else broker.life.broker_epoch
        request = self.assignments.take(broker.config.broker_id, epoch, broker.view.replicas)
        if request is not None:
            try:
                response = await self._channel.send(lambda _: request)
                self.assignments.answered(response, _now_ms())
                if response.error_code != error_codes.NONE:
                    broker.refusals[error_codes.name(response.error_code)] += 1
            except (NotSentError, client.UnsupportedVersionError) as error:
                broker.refusals[type(error).__name__] += 1
                self.assignments.failed(_now_ms())
        self._schedule_assignments()
        broker.changed.set()


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
