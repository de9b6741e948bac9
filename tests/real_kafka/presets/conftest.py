"""Real brokers on a controller that misbehaves by preset, and their requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.kafka.processes import KafkaBroker, wait_until
from mockraft.kafka_api.journal import Exchange, merged
from mockraft.server.views import BrokerView
from mockraft.wire import api_keys
from mockraft.wire.messages.metadata_request import MetadataRequest

from ...topics import ask

HEARTBEAT = api_keys.BROKER_HEARTBEAT
REGISTRATION = api_keys.BROKER_REGISTRATION
FETCH = api_keys.FETCH
FETCH_SNAPSHOT = api_keys.FETCH_SNAPSHOT


class Bench:
    """A double and the real brokers on it."""

    def __init__(self, controller: Any, folder: Path) -> None:
        self.controller = controller
        self.folder = folder
        self.brokers: dict[int, KafkaBroker] = {}

    @contextmanager
    def switched_on(self, kind: str, **params: Any) -> Iterator[int]:
        """The fault, as long as the block runs; it must have met something by then. Gives the mark before it."""
        since, faults = self.mark(), self.controller.script.faults
        fault = self.controller.call(lambda: faults.add(kind, **params))
        try:
            yield since
            assert fault.fired > 0, f"{kind} met nothing"
        finally:
            self.controller.call(lambda: faults.remove(fault.id))

    def mark(self) -> int:
        """The journal's current position."""
        return int(self.controller.call(lambda: max(journal.mark() for journal in self.controller.journals.values())))

    def asked(self, api: int, broker_id: int, since: int = 0) -> list[Exchange]:
        """A broker's requests to one API, with their answers."""
        entries = self.controller.call(lambda: list(merged(self.controller.journals.values(), since)))
        found = (entry for entry in entries if isinstance(entry, Exchange) and entry.api_key == api)
        return [each for each in found if each.broker_id == broker_id]

    def wait_for(self, api: int, broker_id: int, count: int, since: int, timeout_s: float = 40) -> list[Exchange]:
        """The same, once there are so many."""

        def enough() -> list[Exchange]:
            found = self.asked(api, broker_id, since)
            return found if len(found) >= count else []

        return wait_until(enough, timeout_s, f"{count} requests {api_keys.name(api)} of broker {broker_id}")

    def wait_for_peace(self, broker_id: int) -> None:
        """Until a heartbeat is answered well, the broker is unfenced and has (nearly) the whole log."""
        since = self.mark()

        def is_well() -> bool:
            answers = [each.error_code for each in self.asked(HEARTBEAT, broker_id, since)]
            view = self.view(broker_id)
            return 0 in answers and not view.fenced and view.lag is not None and view.lag < 3

        wait_until(is_well, 40, f"broker {broker_id} well again")

    def view(self, broker_id: int) -> BrokerView:
        """The broker as the controller sees it."""
        view: BrokerView = self.controller.call(lambda: self.controller.state.broker(broker_id))
        return view

    def brokers_seen_by(self, broker_id: int) -> set[int]:
        """The brokers in the metadata that a broker gives to clients."""
        return {each.node_id for each in self._metadata(broker_id).brokers}

    def topics_seen_by(self, broker_id: int) -> set[str]:
        """The topics in the metadata that a broker gives to clients."""
        return {each.name for each in self._metadata(broker_id).topics}

    def add_broker(self, broker_id: int, **properties: str) -> KafkaBroker:
        """A broker that is formatted and not started yet."""
        usual = {"replica.lag.time.max.ms": "6000", "auto.create.topics.enable": "false"}
        usual |= {key.replace("_", "."): value for key, value in properties.items()}
        folder = self.folder / f"broker-{broker_id}"
        broker = KafkaBroker(broker_id, folder, self.controller.cluster_id, self.controller.bootstrap, properties=usual)
        self.brokers[broker_id] = broker
        broker.format()
        return broker

    def _metadata(self, broker_id: int) -> Any:
        """Metadata of this broker; librdkafka may query another one that it knows."""

        return asyncio.run(ask(self.brokers[broker_id].bootstrap, MetadataRequest(topics=None), 9))

    @property
    def processes(self) -> list[KafkaBroker]:
        """For the report of a failing test."""
        return list(self.brokers.values())


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, watch_processes: Callable[[Any], None]) -> Iterator[Bench]:
    """A controller, and no broker yet."""
    with Controller.sync(journal_entries_max=100_000) as controller:
        yield from _until_killed(Bench(controller, tmp_path_factory.mktemp("bench")), watch_processes)


@pytest.fixture(scope="module")
def quorum_bench(tmp_path_factory: pytest.TempPathFactory, watch_processes: Callable[[Any], None]) -> Iterator[Bench]:
    """Three controllers, and no broker yet."""
    with Quorum.sync(3) as quorum:
        yield from _until_killed(Bench(quorum, tmp_path_factory.mktemp("bench")), watch_processes)


def _until_killed(bench: Bench, watch_processes: Callable[[Any], None]) -> Iterator[Bench]:
    watch_processes(bench)
    yield bench
    for broker in bench.brokers.values():
        broker.kill()
