"""One process's share of a fleet in its event loop: starts, stops and troubles brokers by the plan, and counts."""

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
from mockraft.brokers.config import BrokerConfig, draw_config, endpoint_of
from mockraft.brokers.fleet.figures import Figures
from mockraft.brokers.fleet.histogram import Histogram
from mockraft.brokers.fleet.memory import resident_bytes
from mockraft.brokers.fleet.plan import Act, Action, plan
from mockraft.brokers.fleet.script import Step
from mockraft.brokers.fleet.share import OWN_REPLICATION_BROKERS_MAX, Share
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.log_dirs.directory_ids import draw_uuid
from mockraft.brokers.log_dirs.memory_disk import MemoryDisk
from mockraft.brokers.metadata_view import Registration
from mockraft.brokers.shared_replication import SharedReplication
from mockraft.wire.client_security import ClientSecurity

POLL_MS = 20
STARTS_AT_ONCE = 10
"""So many actions of one moment are done before the connections get their turn."""


class _Member:
    """One broker of the fleet through all its lives; a part of the one that lives, to hear of its states."""

    __slots__ = ("broker", "config", "excused_until_s", "is_doomed", "runner", "state", "stopping", "told_to_stop")

    def __init__(self, runner: FleetRunner, config: BrokerConfig) -> None:
        self.runner = runner
        self.config = config
        self.broker: SimulatedBroker | None = None
        self.state = BrokerState.NOT_RUNNING
        self.told_to_stop = self.is_doomed = False
        self.stopping: asyncio.Task[None] | None = None
        # Until then the controller may fence it: forever while it is down, frozen or on its way out.
        self.excused_until_s = 0.0

    def start(self) -> None:
        """Nothing to prepare."""

    def metadata_advanced(self) -> None:
        """The runner hears of registrations itself."""

    def state_changed(self, state: BrokerState) -> None:
        """Count it; what ended without being told to is looked into."""
        self.runner.states[self.state] -= 1
        self.runner.states[state] += 1
        self.state = state
        if state is BrokerState.SHUTTING_DOWN and not self.told_to_stop:
            self.runner.spawn(self.runner.bury(self))

    async def close(self) -> None:
        """Nothing is held."""


class FleetRunner:
    """The brokers of a share. :meth:`run` them by the plan; then :meth:`leave` or :meth:`stop`."""

    def __init__(self, share: Share, security: ClientSecurity | None = None) -> None:
        self.share = share
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
        self._members = {broker_id: _Member(self, self._config(broker_id)) for broker_id in share.racks}
        reader = self._config(next(iter(share.racks)))
        self._log = SharedReplication(reader, share.racks, self._heard)
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
        script: Sequence[Step] = (),
        seed: int = 1,
        **options: Any,
    ) -> Self:
        """Brokers 1 to `count` on the controllers at `bootstrap`, racks dealt out in turn; options are a Share's.

        Raises ValueError for a bootstrap that is no host:port and for a script that cannot be followed.

        async with FleetRunner.joining(controller.bootstrap, controller.cluster_id, 100) as fleet:
            await fleet.until(lambda figures: figures.unfenced == 100)
        """
        of_broker = {number + 1: racks[number % len(racks)] for number in range(count)}
        options.setdefault("shares_replication", count > OWN_REPLICATION_BROKERS_MAX)
        return cls(
            Share(
                bootstrap=tuple(map(endpoint_of, bootstrap.split(","))),
                cluster_id=cluster_id,
                racks=of_broker,
                actions=plan(of_broker, ramp_ms, script, seed),
                seed=seed,
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
        await self.leave(self.share.session_timeout_ms)

    async def until(self, condition: Callable[[Figures], bool], timeout_ms: int = 30_000) -> Figures:
        """The figures once the condition holds for them and the script is through. Raises TimeoutError with them."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if self._running is not None:
                    await asyncio.shield(self._running)
                while not condition(figures := self.figures()):
                    await asyncio.sleep(POLL_MS / 1000)
                return figures
        except TimeoutError:
            raise TimeoutError(f"not so within {timeout_ms} ms: {self.figures()}") from None

    @property
    def brokers(self) -> dict[int, SimulatedBroker]:
        """Those that were started, by id, in their newest life."""
        return {broker_id: each.broker for broker_id, each in self._members.items() if each.broker is not None}

    def figures(self) -> Figures:
        """How it is now."""
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
        """Follow the plan; returns when its last action is done. Brokers go on."""
        self._memory_before = resident_bytes()
        self._log.start()
        loop = asyncio.get_running_loop()
        self._began_s = loop.time()
        for number, action in enumerate(self.share.actions):
            wait_s = self._began_s + action.at_ms / 1000 - loop.time()
            if wait_s > 0 or number % STARTS_AT_ONCE == 0:
                await asyncio.sleep(max(0.0, wait_s))
            self._do(action)

    async def leave(self, timeout_ms: int) -> None:
        """Controlled shutdown of all; who has no leave after `timeout_ms` stops without it."""
        await asyncio.gather(*(self._leave(each, timeout_ms) for each in self._members.values()))
        await self._end()

    async def stop(self) -> None:
        """Stop all at once without a word."""
        for member in self._members.values():
            member.told_to_stop = True
        await asyncio.gather(*(broker.kill() for broker in self.brokers.values()))
        await self._end()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._log.close()

    def _config(self, broker_id: int) -> BrokerConfig:
        share = self.share
        paths = tuple(f"/simulated/broker-{broker_id}/d{number}" for number in range(share.log_dirs_per_broker))
        disks = {path: MemoryDisk(path) for path in paths}
        return draw_config(
            broker_id,
            share.cluster_id,
            share.bootstrap,
            random.Random(f"{share.seed}/{broker_id}"),
            log_dir_paths=paths,
            open_disk=disks.__getitem__,  # the same disks in every life
            rack=share.racks[broker_id],
            security=self._security,
            heartbeat_interval_ms=share.heartbeat_interval_ms,
            session_timeout_ms=share.session_timeout_ms,
        )

    # What is done to a broker.

    def _do(self, action: Action) -> None:
        member = self._members[action.broker_id]
        broker = member.broker
        if action.act is Act.START:
            self.spawn(self._start_when_gone(member)) if member.stopping else self._start(member)
        elif broker is None or broker.stopped.is_set():
            return
        elif action.act is Act.STOP:
            member.stopping = self.spawn(self._leave(member, self.share.session_timeout_ms))
        elif action.act is Act.KILL:
            member.told_to_stop = True
            member.excused_until_s = _FOREVER
            member.stopping = self.spawn(broker.kill())
        elif action.act is Act.FREEZE:
            member.excused_until_s = _FOREVER
            broker.freeze()
        elif action.act is Act.THAW:
            # The fence record of its absence may still be on its way.
            member.excused_until_s = asyncio.get_running_loop().time() + self.share.session_timeout_ms / 1000
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
        member.told_to_stop = member.is_doomed = False
        member.stopping = None
        member.excused_until_s = 0.0
        member.state = BrokerState.NOT_RUNNING
        broker = SimulatedBroker(config, self._log if self.share.shares_replication else None)
        broker.refusals = self._errors
        broker.heart.took = self._latency.add
        broker.parts.append(member)
        member.broker = broker
        broker.start()

    async def _start_when_gone(self, member: _Member) -> None:
        if member.stopping is not None:
            await asyncio.wait((member.stopping,))
        self._start(member)

    async def _leave(self, member: _Member, timeout_ms: int) -> None:
        member.told_to_stop = True
        member.excused_until_s = _FOREVER
        if member.broker is not None:
            await member.broker.shut_down(timeout_ms)

    def _fail_log_dir(self, member: _Member, broker: SimulatedBroker) -> None:
        """The last directory that has not failed yet: the first has the metadata log, which no broker survives."""
        left = [each for each in member.config.log_dirs if each.directory_id not in broker.life.offline_dirs]
        if len(left) <= 1:
            # It does not survive that, and is expected not to.
            member.excused_until_s = _FOREVER
            member.is_doomed = True
        if left:
            broker.fail_log_dir(left[-1].directory_id)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run this beside the plan."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def bury(self, member: _Member) -> None:
        """A broker ended by itself: note why, and close what it held."""
        broker = member.broker
        assert broker is not None
        member.excused_until_s = _FOREVER
        await broker.wait_stopped()
        if broker.end is not None and not member.is_doomed:
            self._died[broker.config.broker_id] = broker.epitaph

    # What the metadata log tells.

    def _heard(self, broker_id: int, before: Registration | None, after: Registration | None) -> None:
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
        # The log also tells of lives before this one, and of other fleets.
        is_this_life = member.broker is not None and member.broker.life.broker_epoch == after.broker_epoch
        if is_this_life and now_s > member.excused_until_s:
            self._mistakes[broker_id] += 1


_ALIVE = (BrokerState.STARTING, BrokerState.RECOVERY, BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
_FOREVER = float("inf")
_INCARNATIONS = random.SystemRandom()


def _is_unfenced(registration: Registration | None) -> bool:
    return registration is not None and not registration.fenced
