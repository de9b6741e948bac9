"""One process's share of a fleet in its event loop: carries out the plan on its brokers, and counts."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self

from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.fleet.figures import Figures, Histogram
from mockraft.brokers.fleet.limits import OWN_REPLICATION_BROKERS_MAX, resident_bytes
from mockraft.brokers.fleet.plan import Act, Action, ScriptStep, Shard, plan
from mockraft.brokers.fleet.shared_log import SharedLog
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.metadata.metadata_view import Registration
from mockraft.brokers.shell.socket_links import Outage
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import endpoint_of
from mockraft.wire.directory_ids import draw_uuid

POLL_MS = 20
STARTS_AT_ONCE = 10
"""Maximum number of due actions that run before the event loop handles connections again."""


class _Member:
    """One broker of the fleet through all its restarts."""

    __slots__ = ("broker", "config", "excused_until_s", "is_doomed", "runner", "state", "stop_requested", "stopping")

    def __init__(self, runner: FleetRunner, config: BrokerConfig) -> None:
        self.runner = runner
        self.config = config
        self.broker: SimulatedBroker | None = None
        self.state = BrokerState.NOT_RUNNING
        self.stop_requested = self.is_doomed = False
        self.stopping: asyncio.Task[None] | None = None
        # Until then the controller may fence it: forever while it is down, frozen or leaving.
        self.excused_until_s = 0.0

    def state_changed(self, state: BrokerState) -> None:
        """Count the state; an unexpected end is recorded."""
        self.runner.states[self.state] -= 1
        self.runner.states[state] += 1
        self.state = state
        if state is BrokerState.SHUTTING_DOWN and not self.stop_requested:
            self.runner.spawn(self.runner.record_end(self))


class FleetRunner:
    """The brokers of a share. :meth:`run` carries out the plan; then :meth:`leave` or :meth:`stop`."""

    def __init__(self, shard: Shard, security: ClientSecurity | None = None) -> None:
        self.shard = shard
        self.states: Counter[BrokerState] = Counter()
        self._security = security
        self._errors: Counter[str] = Counter()
        self._mistakes: Counter[int] = Counter()
        self._died: dict[int, str] = {}
        self._latency = Histogram()
        self._registered = self._unfenced = 0
        self._began_s = 0.0
        self._registered_s: float | None = None
        self._unfenced_s: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._members = {broker_id: _Member(self, self._config(broker_id)) for broker_id in shard.racks}
        reader = self._config(next(iter(shard.racks)))
        self._outage = Outage()
        self._log = SharedLog(reader, shard.racks, self._registration_changed, self._outage)
        self._memory_before = 0
        self._running: asyncio.Task[None] | None = None

    @classmethod
    def joining(
        cls,
        bootstrap: str,
        cluster_id: str,
        count: int,
        *,
        racks: Sequence[str | None] = (None,),
        ramp_ms: int = 0,
        script: Sequence[ScriptStep] = (),
        **options: Any,
    ) -> Self:
        """Return a runner for brokers 1 to `count` on the controllers at `bootstrap`; options are a Shard's.

        Racks are assigned round-robin. ValueError for a bootstrap that is no host:port or an invalid script.

            async with FleetRunner.joining(controller.bootstrap, controller.cluster_id, 100) as fleet:
                await fleet.until(lambda figures: figures.unfenced == 100)
        """
        of_broker = {number + 1: racks[number % len(racks)] for number in range(count)}
        seed = options.setdefault("seed", 1)
        options.setdefault("shares_replication", count > OWN_REPLICATION_BROKERS_MAX)
        return cls(
            Shard(
                bootstrap=tuple(map(endpoint_of, bootstrap.split(","))),
                cluster_id=cluster_id,
                racks=of_broker,
                actions=plan(of_broker, ramp_ms, script, seed),
                **options,
            )
        )

    async def __aenter__(self) -> Self:
        self._running = asyncio.ensure_future(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self.leave(self.shard.session_timeout_ms)

    async def until(self, condition: Callable[[Figures], bool], timeout_ms: int = 30_000) -> Figures:
        """Wait until the condition holds and the script has finished; return the figures. TimeoutError has them too."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if self._running is not None:
                    await asyncio.shield(self._running)
                while not condition(figures := self.figures()):
                    await asyncio.sleep(POLL_MS / 1000)
                return figures
        except TimeoutError:
            raise TimeoutError(f"condition not met within {timeout_ms} ms: {self.figures()}") from None

    @property
    def brokers(self) -> dict[int, SimulatedBroker]:
        """The brokers that were started, by id, each in its latest run."""
        return {broker_id: each.broker for broker_id, each in self._members.items() if each.broker is not None}

    def figures(self) -> Figures:
        """The current figures."""
        return Figures(
            brokers=len(self._members),
            started=sum(self.states[state] for state in _ALIVE),
            registered=self._registered,
            unfenced=self._unfenced,
            fenced=self._registered - self._unfenced,
            running=self.states[BrokerState.RUNNING],
            answered=self._latency.total,
            memory_bytes=max(0, resident_bytes() - self._memory_before),
            cpu_s=time.process_time(),
            errors=+self._errors,
            mistakes=self._mistakes,
            died=self._died,
            registered_s=self._registered_s,
            unfenced_s=self._unfenced_s,
            latency=self._latency,
        )

    async def run(self) -> None:
        """Carry out the plan; return after its last action. Brokers continue."""
        self._memory_before = resident_bytes()
        self._log.start()
        loop = asyncio.get_running_loop()
        self._began_s = loop.time()
        for number, action in enumerate(self.shard.actions):
            wait_s = self._began_s + action.at_ms / 1000 - loop.time()
            if wait_s > 0 or number % STARTS_AT_ONCE == 0:
                await asyncio.sleep(max(0.0, wait_s))
            self._do(action)

    async def leave(self, timeout_ms: int) -> None:
        """Shut all down in a controlled way; a broker without permission after `timeout_ms` stops without it."""
        await asyncio.gather(*(self._leave(each, timeout_ms) for each in self._members.values()))
        await self._end()

    async def stop(self) -> None:
        """Stop all at once without notifying the controller."""
        for member in self._members.values():
            member.stop_requested = True
        await asyncio.gather(*(broker.kill() for broker in self.brokers.values()))
        await self._end()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._log.close()

    def _config(self, broker_id: int) -> BrokerConfig:
        shard = self.shard
        paths = tuple(f"/simulated/broker-{broker_id}/d{number}" for number in range(shard.log_dirs_per_broker))
        disks = {path: MemoryDisk(path) for path in paths}
        return draw_config(
            broker_id,
            shard.cluster_id,
            shard.bootstrap,
            random.Random(f"{shard.seed}/{broker_id}"),
            log_dir_paths=paths,
            open_disk=disks.__getitem__,  # the same disks in every life
            rack=shard.racks[broker_id],
            security=self._security,
            heartbeat_interval_ms=shard.heartbeat_interval_ms,
            session_timeout_ms=shard.session_timeout_ms,
        )

    # Actions on a broker.

    def _do(self, action: Action) -> None:
        member = self._members[action.broker_id]
        broker = member.broker
        if action.act is Act.START:
            self.spawn(self._start_when_gone(member)) if member.stopping else self._start(member)
        elif broker is None or broker.stopped.is_set():
            return
        elif action.act is Act.STOP:
            member.stopping = self.spawn(self._leave(member, self.shard.session_timeout_ms))
        elif action.act is Act.KILL:
            member.stop_requested = True
            member.excused_until_s = _FOREVER
            member.stopping = self.spawn(broker.kill())
        elif action.act is Act.FREEZE:
            member.excused_until_s = _FOREVER
            broker.freeze()
        elif action.act is Act.THAW:
            # The fence record of its absence may not have arrived yet.
            member.excused_until_s = asyncio.get_running_loop().time() + self.shard.session_timeout_ms / 1000
            broker.thaw()
        elif action.act is Act.DISCONNECT:
            broker.disconnect()
        else:
            self._fail_log_dir(member, broker)

    def _start(self, member: _Member) -> None:
        before = member.broker
        if before is not None and not before.stopped.is_set():
            return
        config = dataclasses.replace(member.config, incarnation_id=draw_uuid(_INCARNATIONS))
        member.stop_requested = member.is_doomed = False
        member.stopping = None
        member.excused_until_s = 0.0
        member.state = BrokerState.NOT_RUNNING
        broker = SimulatedBroker(config, self._log if self.shard.shares_replication else None, outage=self._outage)
        broker.node.refusals = self._errors
        broker.node.heart.took = self._latency.add
        broker.shell.on_state = member.state_changed
        member.broker = broker
        broker.start()

    async def _start_when_gone(self, member: _Member) -> None:
        if member.stopping is not None:
            await asyncio.wait((member.stopping,))
        self._start(member)

    async def _leave(self, member: _Member, timeout_ms: int) -> None:
        member.stop_requested = True
        member.excused_until_s = _FOREVER
        if member.broker is not None:
            await member.broker.shut_down(timeout_ms)

    def _fail_log_dir(self, member: _Member, broker: SimulatedBroker) -> None:
        """Fail the last directory that works: the first has the metadata log, which no broker survives."""
        left = [each for each in member.config.log_dirs if each.directory_id not in broker.node.life.offline_dirs]
        if len(left) <= 1:
            # Expected: a broker without any directory stops.
            member.excused_until_s = _FOREVER
            member.is_doomed = True
        if left:
            broker.fail_log_dir(left[-1].directory_id)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run this task beside the plan."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def record_end(self, member: _Member) -> None:
        """Handle an unexpected end of a broker: record the reason and release its resources."""
        broker = member.broker
        assert broker is not None
        member.excused_until_s = _FOREVER
        await broker.wait_stopped()
        if broker.end is not None and not member.is_doomed:
            self._died[broker.config.broker_id] = broker.end_reason

    # Changes of the metadata log.

    def _registration_changed(self, broker_id: int, before: Registration | None, after: Registration | None) -> None:
        self._registered += (after is not None) - (before is not None)
        self._unfenced += _is_unfenced(after) - _is_unfenced(before)
        now_s = asyncio.get_running_loop().time()
        if self._registered_s is None and self._registered == len(self._members):
            self._registered_s = now_s - self._began_s
        if self._unfenced_s is None and self._unfenced == len(self._members):
            self._unfenced_s = now_s - self._began_s
        if before is None or after is None or before.fenced or not after.fenced:
            return
        if before.broker_epoch != after.broker_epoch:
            return  # registered anew
        member = self._members[broker_id]
        # The log also has earlier runs, and other fleets.
        is_this_life = member.broker is not None and member.broker.node.life.broker_epoch == after.broker_epoch
        if is_this_life and now_s > member.excused_until_s:
            self._mistakes[broker_id] += 1


_ALIVE = (BrokerState.STARTING, BrokerState.RECOVERY, BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
_FOREVER = float("inf")
_INCARNATIONS = random.SystemRandom()


def _is_unfenced(registration: Registration | None) -> bool:
    return registration is not None and not registration.fenced
