"""A real broker and a simulated one, each with two directories of which one fails: equal requests to the controller.

Both live the same life on one mockraft controller; its journal must tell the same story of them.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.config import BrokerConfig, draw_config
from mockraft.kafka.processes import KafkaBroker
from mockraft.wire import error_codes
from mockraft.wire.connection import endpoint_of
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.uuids import text_of

from ...budgets import soak
from ...topics import assigned, create_topics
from ...waiting import until
from ..disks_and_configs import directory_id_of

pytestmark = pytest.mark.real_kafka

REAL, SIMULATED = 1, 2
PARTITIONS = 5
CAUGHT_UP = [("fence True shut down False", f"offline [] cordoned {cordoned}") for cordoned in ([], ["d0"])]
# Quick to find a lost directory: the checkpoint writer is what touches it.
HEARTBEAT_INTERVAL_MS = 500
QUICK = {
    "broker.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "auto.create.topics.enable": "false",
}


class Real:
    broker_id = REAL

    def __init__(self, controller: Controller, folder: Path, cordoned: str) -> None:
        more = {"cordoned.log.dirs": ",".join(str(folder / name) for name in cordoned.split())} if cordoned else {}
        self.process = KafkaBroker(
            REAL, folder, controller.cluster_id, controller.bootstrap, properties={**QUICK, **more}
        )
        self.formatted = False

    async def start(self) -> None:
        if not self.formatted:
            await asyncio.to_thread(self.process.format)
            self.formatted = True
        self.process.start()
        await asyncio.to_thread(self.process.wait_until_running)

    async def stop(self) -> None:
        await asyncio.to_thread(self.process.stop)

    async def lose(self, number: int) -> None:
        """Directory `number` fails while the broker runs, or before it starts."""
        folder = self.process.log_dirs[number]
        # At once: the broker goes on writing to what is still there.
        folder.rename(folder.with_name(f"gone-{number}"))
        folder.write_text("a file where a directory was")

    async def replace(self, number: int) -> None:
        """A new, formatted disk in its place; the broker is down."""
        self.process.log_dirs[number].unlink()
        await asyncio.to_thread(self.process.format, "--ignore-formatted")

    def directory_ids(self) -> list[bytes]:
        """Of d0 and d1, as they are now."""
        return [directory_id_of(folder) for folder in self.process.log_dirs]


class Simulated:
    broker_id = SIMULATED

    def __init__(self, controller: Controller, folder: Path, cordoned: str) -> None:
        self.rng = random.Random(7)
        paths = (str(folder / "d0"), str(folder / "d1"))
        self.config: BrokerConfig = draw_config(
            SIMULATED,
            controller.cluster_id,
            (endpoint_of(controller.bootstrap),),
            self.rng,
            log_dir_paths=paths,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            cordoned_log_dirs=",".join(str(folder / name) for name in cordoned.split()),
        )
        self.log_dirs = list(self.config.log_dirs)
        self.broker: SimulatedBroker | None = None
        self.failed: set[int] = set()
        self.replaced = False

    async def start(self) -> None:
        offline = {self.log_dirs[number].path: "broken" for number in self.failed}
        live = tuple(log_dir for log_dir in self.log_dirs if log_dir.path not in offline)
        whole = self.broker is not None and not offline and not self.replaced
        epoch = self.broker.life.broker_epoch if whole and self.broker else -1
        self.replaced = False
        self.config = replace(
            self.config,
            log_dirs=live,
            offline_log_dirs=offline,
            incarnation_id=draw_uuid(self.rng),
            previous_broker_epoch=epoch,
        )
        self.broker = SimulatedBroker(self.config)
        self.broker.start()
        await self.broker.wait_until(BrokerState.RUNNING)

    async def stop(self) -> None:
        assert self.broker is not None
        await self.broker.shut_down()

    async def lose(self, number: int) -> None:
        self.failed.add(number)
        if self.broker is not None and not self.broker.stopped.is_set():
            self.broker.fail_log_dir(self.log_dirs[number].path)

    async def replace(self, number: int) -> None:
        self.failed.discard(number)
        self.replaced = True
        self.log_dirs[number] = self.log_dirs[number]._replace(directory_id=draw_uuid(self.rng))

    def directory_ids(self) -> list[bytes]:
        return [log_dir.directory_id for log_dir in self.log_dirs]


Broker = Real | Simulated


class Life:
    """One broker's life, and what the controller's journal says of it."""

    def __init__(self, controller: Controller, broker: Broker) -> None:
        self.controller = controller
        self.broker = broker
        self.names: dict[bytes, str] = {
            bytes(15) + b"\1": "UNASSIGNED",
            bytes(15) + b"\2": "LOST",
            bytes(16): "MIGRATING",
        }
        self.story: list[Any] = []
        self._heard = len(controller.journal.exchanges())

    def learn(self, *names: str) -> None:
        """Rename the directories from now on."""
        for name, directory_id in zip(names, self.broker.directory_ids(), strict=True):
            self.names[directory_id] = name

    @property
    def image(self) -> Any:
        return self.controller.running.controller.image

    @property
    def registration(self) -> Any:
        return self.image.cluster.brokers.get(self.broker.broker_id)

    async def create(self, topic: str, partitions: int = PARTITIONS) -> None:
        await create_topics(self.controller.bootstrap, assigned(topic, *[[self.broker.broker_id]] * partitions))

    def places(self, topic: str) -> list[str]:
        """The directory of each partition of a topic by the metadata."""
        found = self.image.topics.by_name.get(topic)
        if found is None:
            return []
        return [self.names.get(p.directories[0], "?") for _, p in sorted(found.partitions.items())]

    async def placed(self, topic: str) -> None:
        await until(lambda: (p := self.places(topic)) and not {"UNASSIGNED", "?"} & set(p))

    async def quiet(self) -> None:
        """Two more heartbeats have come: nothing is on its way any more."""
        seen = len(self.exchanges("BrokerHeartbeat"))
        await until(lambda: len(self.exchanges("BrokerHeartbeat")) >= seen + 2)

    async def settled(self, title: str, topic: str = "") -> None:
        """A chapter once nothing is on its way any more, and the places of a topic then."""
        await self.quiet()
        self.chapter(title)
        if topic:
            self.story.append(self.places(topic))

    def exchanges(self, *apis: str) -> list[Any]:
        found = self.controller.journal.exchanges()[self._heard :]
        return [e for e in found if e.api in apis and e.request.broker_id == self.broker.broker_id]

    def chapter(self, title: str) -> None:
        """Requests accepted since the last chapter, without repetitions and without what depends on milliseconds.

        That is whether a heartbeat falls between having caught up and being ready, whether the session of the last life
        is over when a registration comes, and whether that is before or after an assignment: they come last.
        """
        said: list[Any] = [title]
        assigned = []
        for exchange in self.exchanges("BrokerRegistration", "BrokerHeartbeat", "AssignReplicasToDirs"):
            line = (exchange.api, getattr(self, exchange.api)(exchange.request))
            if exchange.response.error_code != error_codes.NONE:
                continue
            if exchange.api == "AssignReplicasToDirs":
                assigned.append(line)
            elif line != said[-1] and line[1] not in CAUGHT_UP:
                said.append(line)
        self.story.append([*said, *assigned])
        self._heard = len(self.controller.journal.exchanges())

    def _named(self, directory_ids: Any) -> Any:
        return None if directory_ids is None else sorted(self.names.get(each, text_of(each)) for each in directory_ids)

    def BrokerRegistration(self, request: Any) -> Any:  # noqa: N802
        return self._named(request.log_dirs), request.previous_broker_epoch >= 0

    def BrokerHeartbeat(self, request: Any) -> Any:  # noqa: N802
        return (
            f"fence {request.want_fence} shut down {request.want_shut_down}",
            f"offline {self._named(request.offline_log_dirs)} cordoned {self._named(request.cordoned_log_dirs)}",
        )

    def AssignReplicasToDirs(self, request: Any) -> Any:  # noqa: N802
        topics = {topic_id: found.name for topic_id, found in self.image.topics.by_id.items()}
        return {
            (self.names.get(each.id, "?"), topics.get(topic.topic_id, "?")): sorted(
                p.partition_index for p in topic.partitions
            )
            for each in request.directories
            for topic in each.topics
        }


async def both(tmp_path: Path, live: Any, cordoned: str = "") -> list[Any]:
    """The stories of a real and of a simulated broker that lived like this."""
    stories = []
    for kind in (Real, Simulated):
        async with Controller(session_timeout_ms=6000) as controller:
            broker = kind(controller, tmp_path / kind.__name__, cordoned)
            life = Life(controller, broker)
            try:
                await live(life, broker)
            finally:
                if isinstance(broker, Real):
                    broker.process.kill()
                elif broker.broker is not None:
                    await broker.broker.kill()
            stories.append(life.story)
    return stories


async def test_a_directory_fails_and_is_replaced(tmp_path: Path) -> None:
    async def live(life: Life, broker: Broker) -> None:
        await broker.start()
        life.learn("d0", "d1")
        await life.settled("started")
        await life.create("orders")
        await life.placed("orders")
        await life.settled("a topic", "orders")
        await broker.lose(1)
        await until(lambda: len(life.registration.log_dirs) == 1)
        await life.settled("d1 failed", "orders")
        await life.create("after", 2)
        await life.settled("a topic after the failure", "after")
        await broker.stop()
        life.chapter("stopped")
        await until(lambda: life.registration.fenced)
        await broker.start()
        await life.settled("started with d1 offline", "orders")
        await broker.stop()
        await broker.replace(1)
        life.learn("d0", "new d1")
        life.chapter("stopped again")
        await broker.start()
        await life.placed("orders")
        await life.settled("started with a new d1", "orders")
        await broker.stop()

    real, simulated = await both(tmp_path, live)
    assert simulated == real


async def test_a_directory_that_the_file_cordons(tmp_path: Path) -> None:
    async def live(life: Life, broker: Broker) -> None:
        await broker.start()
        life.learn("d0", "d1")
        await life.settled("started")
        await life.create("orders", 3)
        await life.placed("orders")
        life.story.append(life.places("orders"))
        await broker.stop()

    real, simulated = await both(tmp_path, live, cordoned="d0")
    assert simulated == real


async def test_the_replicas_of_many_partitions_go_to_the_same_directories(tmp_path: Path) -> None:
    """Kafka places them in the order of a Java hash map, leaders first."""

    async def live(life: Life, broker: Broker) -> None:
        await broker.start()
        life.learn("d0", "d1")
        for topic, partitions in (("orders", 4), ("payments", 13), ("a-topic-of-more", 30)):
            await life.create(topic, partitions)
            await life.placed(topic)
            life.story.append(life.places(topic))
        await broker.stop()

    real, simulated = await both(tmp_path, live)
    assert simulated == real


@soak
async def test_unfenced_while_its_assignments_are_refused(tmp_path: Path) -> None:
    """As 4.3.1's broker: BrokerServer.startup sets it ready to unfence without its AssignmentsManager."""

    async def live(life: Life, broker: Broker) -> None:
        await broker.start()
        life.learn("d0", "d1")
        await life.create("orders")
        await life.placed("orders")
        before = life.places("orders")
        await broker.stop()
        await broker.lose(1)
        await broker.replace(1)
        life.learn("d0", "new d1")
        life.chapter("stopped")
        held = life.controller.stub("AssignReplicasToDirs").inject_error("UNKNOWN_SERVER_ERROR")
        await broker.start()
        await until(lambda: held.call_count)
        life.story += ["unfenced" if not life.registration.fenced else "fenced", life.places("orders") == before]
        life.controller.remove(held)
        await life.placed("orders")
        life.story.append(life.places("orders"))
        await broker.stop()

    real, simulated = await both(tmp_path, live)
    assert real[1] == "unfenced"
    assert simulated == real
