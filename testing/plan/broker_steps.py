"""The steps of a plan that end, start and restart simulated brokers, and break their directories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mockraft.brokers.lifecycle import ShutdownWanted
from mockraft.testing.twins import drawn_config, next_config, registered_config, started_with
from mockraft.twin.brokers import with_restored
from mockraft.wire import uuids

if TYPE_CHECKING:
    from mockraft.brokers.config import BrokerConfig
    from mockraft.testing.broker import SimulatedBroker
    from mockraft.testing.started_brokers import StartedBrokers


_OF_THE_STEP: Final = ("brokers", "each", "together")
"""Options of a step that are none of its brokers."""


class BrokerSteps:
    """The steps on a controller's brokers; each returns what was refused.

    `sample` lets half a second pass, `settle` waits until nothing changes.
    """

    def __init__(
        self,
        started: StartedBrokers,
        sample: Callable[[], Awaitable[None]],
        settle: Callable[[], Awaitable[None]],
        patience_ms: int,
    ) -> None:
        self._started = started
        self._running = started.double.leading
        self._sample = sample
        self._settle = settle
        self._patience_ms = patience_ms

    def _that_run(self) -> list[int]:
        return sorted(number for number, each in self._started.by_id.items() if not each.stopped.is_set())

    def _that_runs(self, broker_id: int) -> SimulatedBroker | None:
        broker = self._started.by_id.get(broker_id)
        return None if broker is None or broker.stopped.is_set() else broker

    async def lose(self, broker_ids: Sequence[int]) -> list[str]:
        """Kill brokers."""
        answers = []
        for broker_id in broker_ids:
            broker = self._that_runs(broker_id)
            if broker is None:
                answers.append(f"broker {broker_id} does not run")
            else:
                await broker.kill()
        return answers

    async def lose_rack(self, rack: str) -> list[str]:
        """Kill the brokers of a rack."""
        brokers = self._running.controller.image.cluster.brokers.values()
        lost = {each.broker_id for each in brokers if each.rack == rack}
        if not lost:
            return [f"no broker is in rack {rack}"]
        # Those that are gone already are lost, too.
        running = [broker_id for broker_id in self._that_run() if broker_id in lost]
        return await self.lose(running) if running else [f"no broker of rack {rack} runs"]

    async def lose_directory(self, argument: Mapping[str, Any]) -> list[str]:
        """Take a directory offline."""
        broker = self._that_runs(argument["broker"])
        if broker is None:
            return [f"broker {argument['broker']} does not run"]
        wanted = argument["directory"]
        for number, each in enumerate(broker.config.log_dirs):
            if wanted in (number, uuids.text_of(each.directory_id)):
                broker.fail_log_dir(each.path)
                return []
        return [f"broker {argument['broker']} has no directory {wanted}"]

    async def restore_directory(self, argument: Mapping[str, Any]) -> list[str]:
        """Bring a failed directory back, and restart its broker, which looks at its directories only then."""
        broker_id = argument["broker"]
        broker = self._started.by_id.get(broker_id)
        if broker is None:
            return [f"broker {broker_id} does not run"]
        wanted = argument["directory"]
        try:
            with_restored(next_config(self._started, broker), wanted)
        except LookupError as error:
            return [str(error)]
        if not broker.stopped.is_set() and (answers := await self.shut_down([broker_id])):
            return answers
        return await self._run([with_restored(next_config(self._started, broker), wanted)])

    async def shut_down(self, broker_ids: Sequence[int]) -> list[str]:
        """Shut brokers down in a controlled way, one after the other."""
        return [answer for broker_id in broker_ids for answer in await self._shut_down([broker_id])]

    async def _shut_down(self, broker_ids: Sequence[int]) -> list[str]:
        answers = [f"broker {each} does not run" for each in broker_ids if self._that_runs(each) is None]
        brokers = [broker for each in broker_ids if (broker := self._that_runs(each)) is not None]
        for broker in brokers:
            broker.happen(ShutdownWanted())
        end_ms = self._running.clock.now_ms() + self._patience_ms
        while self._running.clock.now_ms() < end_ms and not all(each.stopped.is_set() for each in brokers):
            await self._sample()
        for broker in brokers:
            if broker.stopped.is_set():
                await broker.close()
            else:
                about = f"was not allowed to shut down within {self._patience_ms // 1000} s"
                answers.append(f"broker {broker.config.broker_id} {about}")
                await broker.kill()
        return answers

    async def start(self, argument: Sequence[int] | Mapping[str, Any]) -> list[str]:
        """Start brokers that do not run: each when nothing changes any more after the one before, or `together`."""
        options: Mapping[str, Any] = argument if isinstance(argument, Mapping) else {"brokers": argument}
        return [
            answer for group in _groups(options["brokers"], options) for answer in await self._start(group, options)
        ]

    async def _start(self, broker_ids: Sequence[int], options: Mapping[str, Any]) -> list[str]:
        answers, configs = [], []
        for broker_id in broker_ids:
            given = {name: value for name, value in options.items() if name not in _OF_THE_STEP}
            own = {**options.get("each", {}).get(broker_id, {}), **given}
            if "release" in given and "features" not in given:
                own.pop("features", None)
            before = self._started.by_id.get(broker_id)
            if before is not None and not before.stopped.is_set():
                if own:
                    answers.append(f"broker {broker_id} runs already, without these options")
                continue
            if before is not None:
                config: BrokerConfig | None = next_config(self._started, before)
            else:
                # One that was fenced in the source, or unregistered.
                config = registered_config(self._started, broker_id)
                if config is None and "directories" in own:
                    config = drawn_config(self._started, broker_id)
            if config is None:
                answers.append(f"broker {broker_id} is not registered, and no directories are given")
            else:
                configs.append(started_with(config, own))
        return answers + (await self._run(configs) if configs else [])

    async def restart(self, argument: Sequence[int] | str | Mapping[str, Any]) -> list[str]:
        """Restart brokers: each when the one before is back, or `together`; with the features of a `release`."""
        options: Mapping[str, Any] = argument if isinstance(argument, Mapping) else {"brokers": argument}
        broker_ids: Sequence[int] = self._that_run() if options["brokers"] == "all" else options["brokers"]
        start = {name: options[name] for name in ("release",) if name in options}
        answers: list[str] = []
        for group in _groups(broker_ids, options):
            run = [each for each in group if self._that_runs(each) is not None]
            answers += await self._shut_down(group)
            answers += await self._start(run, start)
        return answers if broker_ids else ["no broker runs"]

    async def _run(self, configs: Sequence[BrokerConfig]) -> list[str]:
        answers = []
        for config in configs:
            if config.offline_log_dirs and not config.log_dirs:
                answers.append(f"broker {config.broker_id} does not start: all its directories have failed")
            else:
                await self._started.run(config, wait=None)
        await self._settle()
        brokers = self._running.controller.image.cluster.brokers
        for config in configs:
            registered = brokers.get(config.broker_id)
            is_registered = registered is not None and registered.incarnation_id == config.incarnation_id
            if config.log_dirs and not is_registered:
                answers.append(f"broker {config.broker_id} could not register")
        return answers


def _groups(broker_ids: Sequence[int], options: Mapping[str, Any]) -> list[Sequence[int]]:
    """Return the brokers to be handled at the same time."""
    return [broker_ids] if options.get("together") else [[each] for each in broker_ids]
