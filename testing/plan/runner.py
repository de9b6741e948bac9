"""The steps of a plan, done on a controller with a virtual clock and the simulated brokers of a twin."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mockraft.brokers import heartbeats
from mockraft.kafka_api.clock import VirtualClock
from mockraft.kafka_configs import config_keys
from mockraft.kafka_configs.config_values import Operation
from mockraft.releases import METADATA_VERSION
from mockraft.server.apis import refusals
from mockraft.server.controller.settings.feature_updates import UpgradeType
from mockraft.server.controller.settings.features import metadata_version_level
from mockraft.testing.plan.availability import Availability, availability, reassignments
from mockraft.testing.plan.broker_steps import BrokerSteps
from mockraft.testing.plan.outcome import PlanOutcome, StepOutcome
from mockraft.testing.plan.steps import Step, steps_of
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

if TYPE_CHECKING:
    from mockraft.server.controller.image import Image
    from mockraft.testing.started_brokers import StartedBrokers


Assignment = dict[tuple[str, int], list[int]]
"""Replicas by (topic, partition)."""


class PlacementError(Exception):
    """Raised if there are too few brokers for a partition's replicas."""


class Placement:
    """Chooses brokers with few replicas, in racks that a partition does not have yet; fenced ones are left out."""

    def __init__(self, image: Image) -> None:
        self._image = image
        brokers = image.cluster.brokers.values()
        self._racks = {each.broker_id: each.rack for each in brokers if each.is_active and each.has_uncordoned_log_dirs}
        replicas = (
            replica
            for topic in image.topics.by_id.values()
            for p in topic.partitions.values()
            for replica in p.replicas
        )
        self._load = Counter(replicas)

    def drained(self, broker_ids: list[int], topics: Collection[str] | None = None) -> Assignment:
        """Return as many replicas for each partition of these brokers, on others; None: all topics. PlacementError."""
        return {
            (name, partition_id): self._filled(
                name, partition_id, [each for each in replicas if each not in broker_ids], len(replicas), broker_ids
            )
            for name, partition_id, replicas in self._partitions()
            if {*replicas} & {*broker_ids} and (topics is None or name in topics)
        }

    def with_factor(self, factor: int, topic: str | None) -> Assignment:
        """Return the replicas of each partition with this replication factor; PlacementError."""
        return {
            (name, partition_id): self._filled(name, partition_id, replicas[:factor], factor)
            for name, partition_id, replicas in self._partitions()
            if topic in (None, name) and len(replicas) != factor
        }

    def _partitions(self) -> list[tuple[str, int, list[int]]]:
        # In the order of the log: a copy with other names has the same figures.
        topics = self._image.topics.by_id.values()
        return [(topic.name, number, list(p.replicas)) for topic in topics for number, p in topic.partitions.items()]

    def _filled(
        self, name: str, partition_id: int, kept: list[int], count: int, avoided: Collection[int] = ()
    ) -> list[int]:
        replicas = [*kept]
        while len(replicas) < count:
            racks = {self._racks.get(each) for each in replicas}
            candidates = [each for each in self._racks if each not in replicas and each not in avoided]
            if not candidates:
                raise PlacementError(
                    f"{name}-{partition_id}: its {count} replicas need as many brokers, and there are {len(replicas)}"
                )
            chosen = min(candidates, key=lambda each: (self._racks[each] in racks, self._load[each], each))
            self._load[chosen] += 1
            replicas.append(chosen)
        return replicas


SAMPLE_MS: Final = 500
QUIET_SESSIONS: Final = 1.5
"""A step is over when nothing changed for so many session timeouts."""

STEP_MS_MAX: Final = 600_000
_IDLE: Final = "NoOpRecord"


async def run_plan(brokers: StartedBrokers, plan: Iterable[Step | Mapping[str, Any]]) -> PlanOutcome:
    """Do the steps one after the other, on a controller and these brokers of it.

    PlanError; ValueError for a controller without a virtual clock.
    """
    clock = brokers.double.clock
    if not isinstance(clock, VirtualClock):
        raise ValueError('a plan is done in virtual time: give the controller clock="virtual"')
    steps = steps_of(list(plan))
    before = availability(brokers.double.leading.controller)
    with _restarts_unlogged():
        return PlanOutcome(before, [await _Run(brokers, clock, step).outcome() for step in steps])


@contextmanager
def _restarts_unlogged() -> Iterator[None]:
    """Do not log that this thread's brokers may not register until their old sessions have expired."""
    thread = threading.get_ident()
    expected = error_codes.name(error_codes.DUPLICATE_BROKER_REGISTRATION)
    loggers = [logging.getLogger(module.__name__) for module in (refusals, heartbeats)]

    def is_unexpected(record: logging.LogRecord) -> bool:
        return threading.get_ident() != thread or expected not in record.getMessage()

    for each in loggers:
        each.addFilter(is_unexpected)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(is_unexpected)


class _Run:
    """One step."""

    def __init__(self, brokers: StartedBrokers, clock: VirtualClock, step: Step) -> None:
        self._brokers, self._clock, self._step = brokers, clock, step
        self._controller, self._running = brokers.double, brokers.double.leading
        self._began_ms = self._changed_ms = self._clock.now_ms()
        self._before = self._during = self._after = availability(self._running.controller)
        self._features = dict(self._running.controller.image.features)
        self._changes: list[tuple[float, Availability]] = []
        self._start = self._seen = self._running.controller.log.end_offset

    async def outcome(self) -> StepOutcome:
        """Do the step and wait until nothing changes."""
        brokers = BrokerSteps(self._brokers, self._sample, self._settle, STEP_MS_MAX)
        steps: Mapping[str, Callable[[Any], Awaitable[list[str]]]] = {
            "upgrade": self._upgrade,
            "unregister": self._unregister,
            "lose": brokers.lose,
            "lose_rack": brokers.lose_rack,
            "lose_directory": brokers.lose_directory,
            "restore_directory": brokers.restore_directory,
            "shut_down": brokers.shut_down,
            "start": brokers.start,
            "restart": brokers.restart,
            "drain": self._drain,
            "reassign": self._reassign,
            "replication_factor": self._replication_factor,
            "config": self._config,
            "elect": self._elect,
            "wait": self._wait,
        }
        answers = await steps[self._step.kind](self._step.argument)
        await self._settle()
        waited_s = self._step.argument if self._step.kind == "wait" else 0
        return StepOutcome(
            step=self._step,
            answers=tuple(dict.fromkeys(answers)),
            seconds=max((self._changed_ms - self._began_ms) / 1000, waited_s),
            features=self._changed_features(),
            before=self._before,
            during=self._during,
            after=self._after,
            changes=self._changes,
            records=[each for each in self._controller.state.metadata_log(self._start) if each.type != _IDLE],
            reassignments=reassignments(self._running.controller),
        )

    def _changed_features(self) -> dict[str, tuple[int, int]]:
        was, now = self._features, self._running.controller.image.features
        pairs = {name: (was.get(name, 0), now.get(name, 0)) for name in sorted({*was, *now})}
        return {name: levels for name, levels in pairs.items() if levels[0] != levels[1]}

    async def _sample(self) -> None:
        """Let half a second pass, and look at the partitions if records were written."""
        self._clock.advance(SAMPLE_MS)
        # Listeners of brokers open and close in tasks of the event loop.
        await asyncio.sleep(0)
        log, state = self._running.controller.log, self._controller.state
        if log.end_offset > self._seen:
            if any(each.type != _IDLE for each in state.metadata_log(self._seen)):
                self._changed_ms = self._clock.now_ms()
                found = availability(self._running.controller)
                if found != self._after:
                    self._changes.append(((self._changed_ms - self._began_ms) / 1000, found))
                self._after = found
                self._during = self._during.union(found)
            self._seen = log.end_offset

    async def _settle(self) -> None:
        quiet_ms = QUIET_SESSIONS * self._running.config.session_timeout_ms
        end_ms = self._clock.now_ms() + STEP_MS_MAX
        since_ms = self._clock.now_ms()
        while self._clock.now_ms() < min(end_ms, max(self._changed_ms, since_ms) + quiet_ms):
            await self._sample()

    async def _upgrade(self, levels: Mapping[str, str]) -> list[str]:
        try:
            updates = [
                FeatureUpdateKey(
                    feature=name, max_version_level=self._level(name, text), upgrade_type=UpgradeType.UPGRADE
                )
                for name, text in levels.items()
            ]
        except ValueError as error:
            return [str(error)]
        response = await self._controller.ask(UpdateFeaturesRequest(feature_updates=updates, timeout_ms=60_000))
        return _refusals([("", response), *((each.feature, each) for each in response.results)])

    def _level(self, name: str, text: str) -> int:
        if name == METADATA_VERSION:
            return metadata_version_level(text, self._running.controller.release, unstable=True)
        if not re.fullmatch(r"[0-9]{1,4}", text):
            raise ValueError(f"{name}: {text} is not a level")
        return int(text)

    async def _unregister(self, broker_ids: list[int]) -> list[str]:
        answers = []
        for broker_id in broker_ids:
            response = await self._controller.ask(UnregisterBrokerRequest(broker_id=broker_id))
            answers += _refusals([(f"broker {broker_id}", response)])
        return answers

    async def _drain(self, argument: list[int] | Mapping[str, Any]) -> list[str]:
        broker_ids, topics = (
            (argument["brokers"], argument.get("topics")) if isinstance(argument, Mapping) else (argument, None)
        )
        try:
            wanted = Placement(self._running.controller.image).drained(broker_ids, topics)
        except PlacementError as error:
            return [f"{error}; no replica was moved"]
        return await self._assign(wanted)

    async def _reassign(self, argument: Mapping[str, Any]) -> list[str]:
        return await self._assign({(argument["topic"], argument["partition"]): argument["replicas"]})

    async def _replication_factor(self, argument: Mapping[str, Any]) -> list[str]:
        topic, image = argument.get("topic"), self._running.controller.image
        if topic is not None and topic not in image.topics.by_name:
            return [f"there is no topic {topic}"]
        try:
            wanted = Placement(image).with_factor(argument["factor"], topic)
        except PlacementError as error:
            return [str(error)]
        return await self._assign(wanted)

    async def _assign(self, wanted: Assignment) -> list[str]:
        topics: dict[str, list[ReassignablePartition]] = {}
        for (name, partition_id), replicas in wanted.items():
            partition = ReassignablePartition(partition_index=partition_id, replicas=replicas)
            topics.setdefault(name, []).append(partition)
        requested = [ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
        response = await self._controller.ask(AlterPartitionReassignmentsRequest(topics=requested, timeout_ms=60_000))
        parts = [(f"{t.name}-{p.partition_index}", p) for t in response.responses for p in t.partitions]
        return _refusals([("", response), *parts])

    async def _config(self, argument: Mapping[str, Any]) -> list[str]:
        kind = config_keys.TOPIC if "topic" in argument else config_keys.BROKER
        name = "" if argument.get("broker") == "default" else str(argument.get("topic", argument.get("broker")))
        configs = [
            AlterableConfig(
                name=key, config_operation=Operation.DELETE if value is None else Operation.SET, value=value
            )
            for key, value in argument["set"].items()
        ]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        response = await self._controller.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        return _refusals((each.resource_name, each) for each in response.responses)

    async def _elect(self, argument: Mapping[str, Any]) -> list[str]:
        topics = [TopicPartitions(topic=argument["topic"], partitions=[argument["partition"]])]
        request = ElectLeadersRequest(election_type=int(argument.get("unclean", False)), topic_partitions=topics)
        response = await self._controller.ask(request)
        results = response.replica_election_results
        return _refusals(
            [("", response), *((f"{t.topic}-{p.partition_id}", p) for t in results for p in t.partition_result)]
        )

    async def _wait(self, seconds: int) -> list[str]:
        for _ in range(seconds * 1000 // SAMPLE_MS):
            await self._sample()
        return []


def _refusals(parts: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the errors in parts of a response, as name and message."""
    found = []
    for subject, part in parts:
        if part.error_code != error_codes.NONE:
            message = getattr(part, "error_message", None)
            about = f"{error_codes.name(part.error_code)}{': ' + message if message else ''}"
            found.append(f"{subject}: {about}" if subject else about)
    return found
