"""What mockraft's fixtures start, judge and report; imported when the first of them is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mockraft.broker_door import SimulatedBroker, SyncSimulatedBroker
from mockraft.brokers.lifecycle import BrokerState
from mockraft.controller_door import Controller, SyncController, ThreadedController
from mockraft.kafka_jars import KafkaUnavailableError, classpath, java
from mockraft.kafka_processes import KafkaBroker
from mockraft.pytest_plugin import LIVE, setting
from mockraft.quorum_door import Quorum, SyncQuorum
from mockraft.server.journal import merged
from mockraft.server.journal import report as told

Door = ThreadedController | SyncQuorum
DoorT = TypeVar("DoorT", bound=ThreadedController)

_BROKERS = pytest.StashKey[list[KafkaBroker]]()
_JUDGED = ("strict", "assert_all_used")
_CONTROLLERS = 3
_BROKER_LOG_LINES = 12
_NAME_LENGTH_MAX = 200


@dataclass
class Watched:
    """A double that runs for a fixture; `given` are the options that are not its marker's."""

    door: Door
    request: pytest.FixtureRequest
    given: Mapping[str, Any]
    began_ms: int = 0

    def begin(self, node: Any) -> None:
        """The test begins: what it is told of is from now on."""
        self.door.strict = _Options(node, self.given).flag("strict")
        self.began_ms = self.door.now_ms

    def concerns(self, item: pytest.Item) -> bool:
        """Whether the test uses it: it is its own, or it asked for that of the session."""
        # What a test asks for by name as it runs (`request.getfixturevalue`) stands nowhere public.
        asked_for = getattr(getattr(item, "_request", None), "_fixture_defs", {})
        names = (*getattr(item, "fixturenames", ()), *asked_for)
        return self.request.scope == "function" or self.request.fixturename in names

    def complaints(self, item: pytest.Item) -> Iterator[str]:
        """What it has against a test that passed."""
        said, door = _Options(item, self.given), self.door
        checks = [door.assert_all_stubs_used, door.assert_all_faults_fired] if said.flag("assert_all_used") else []
        if door.strict:
            checks.append(door.assert_all_expected)
        for check in checks:
            try:
                check()
            except AssertionError as error:
                yield str(error)


class _Options:
    """What a test's markers say, the nearest first, over the options of the session and of the command line."""

    def __init__(self, node: Any, given: Mapping[str, Any]) -> None:
        self.config: pytest.Config = node.config
        self.given = dict(given)
        for mark in reversed(list(node.iter_markers("mockraft"))):
            if mark.args:
                raise pytest.UsageError(f"@pytest.mark.mockraft takes options by name, as brokers=2, not {mark.args}")
            self.given |= mark.kwargs

    def flag(self, name: str) -> bool:
        """An option that is yes or no."""
        if name in self.given:
            return bool(self.given[name])
        return setting(self.config, name).lower() in ("true", "yes", "on", "1")

    def of_controllers(self, *others: str) -> dict[str, Any]:
        """The options of what is started, without those of the plugin and `others`."""
        return {name: value for name, value in self.given.items() if name not in (*_JUDGED, *others)}


@contextmanager
def running_controller(
    request: pytest.FixtureRequest, options: Mapping[str, Any], kind: type[DoorT]
) -> Iterator[DoorT]:
    """A controller for a fixture."""
    said = _Options(request.node, options)
    made = _made(Controller, said.of_controllers("controllers"))
    with kind(made) as controller, _watched(controller, request, options):
        yield controller


@contextmanager
def running_quorum(request: pytest.FixtureRequest, options: Mapping[str, Any]) -> Iterator[SyncQuorum]:
    """A quorum for a fixture."""
    said = _Options(request.node, options)
    quorum = _made(Quorum, {"controllers": _CONTROLLERS, **said.of_controllers("brokers")})
    with SyncQuorum(quorum) as running, _watched(running, request, options):
        yield running


def _made(kind: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"@pytest.mark.mockraft or mockraft_options: {error}") from error


@contextmanager
def _watched(door: Door, request: pytest.FixtureRequest, given: Mapping[str, Any]) -> Iterator[None]:
    live = request.config.stash[LIVE]
    watched = Watched(door, request, given)
    watched.begin(request.node)
    live.insert(0, watched) if request.scope == "session" else live.append(watched)
    try:
        yield
    finally:
        live.remove(watched)


@contextmanager
def simulated_brokers(request: pytest.FixtureRequest) -> Iterator[Callable[..., SyncSimulatedBroker]]:
    """What starts simulated brokers for a test."""
    with ExitStack() as started:

        def start(broker_id: int = 1, *, of: Door | None = None, **options: Any) -> SyncSimulatedBroker:
            door = of or request.getfixturevalue("mockraft")
            if isinstance(door, SyncController):
                return door.start_broker(broker_id, **options)
            broker = SimulatedBroker.sync(door.bootstrap, door.cluster_id, broker_id, **options)
            started.enter_context(broker)
            # Who should let it leave may be gone by then, or scripted not to.
            started.callback(broker.kill)
            broker.wait_until(BrokerState.RUNNING)
            return broker

        yield start


@contextmanager
def real_brokers(request: pytest.FixtureRequest) -> Iterator[Callable[..., KafkaBroker]]:
    """What starts Kafka's own brokers for a test."""
    folder: Path = request.getfixturevalue("tmp_path")
    brokers = request.node.stash.setdefault(_BROKERS, [])

    def start(broker_id: int = 1, *, of: Door | None = None, **options: Any) -> KafkaBroker:
        door = of or request.getfixturevalue("mockraft")
        broker = KafkaBroker(broker_id, folder / f"broker-{broker_id}", door.cluster_id, door.bootstrap, **options)
        try:
            java()
            classpath(broker.version)
        except KafkaUnavailableError as error:
            reason = f"a real Kafka broker cannot run here: {error}"
            if setting(request.config, "real_broker") == "fail":
                pytest.fail(reason, pytrace=False)
            raise pytest.skip.Exception(reason) from None
        brokers.append(broker)
        broker.format()
        broker.start()
        broker.wait_until_running()
        return broker

    try:
        yield start
    finally:
        for broker in brokers:
            broker.kill()


def begin(item: pytest.Item, live: list[Watched]) -> None:
    """A test begins that may use doubles of the session."""
    for watched in live:
        if watched.request.scope != "function" and watched.concerns(item):
            watched.begin(item)


def complaint(item: pytest.Item, live: list[Watched]) -> str:
    """What the doubles of a test that passed have against it; empty if nothing."""
    return "\n\n".join(text for watched in live if watched.concerns(item) for text in watched.complaints(item))


def add_journals(report: pytest.TestReport, item: pytest.Item, live: list[Watched]) -> None:
    """Put the journals of a failing test's doubles into its report, and into files where that was asked for."""
    lines = int(setting(item.config, "journal_lines"))
    folder = setting(item.config, "journal_dir")
    for watched in live:
        if not watched.concerns(item):
            continue
        entries = watched.door.call(lambda door: merged(door.double.journals.values()), watched.door)
        if lines:
            title = f"mockraft journal ({watched.request.fixturename})"
            report.sections.append((title, told(entries, watched.began_ms, lines) or "nothing was asked"))
        if folder:
            name = re.sub(r"[^\w.-]+", "-", f"{item.nodeid}.{watched.request.fixturename}").strip("-")[
                -_NAME_LENGTH_MAX:
            ]
            Path(folder).mkdir(parents=True, exist_ok=True)
            for ending in ("jsonl", "pcapng"):
                watched.door.write_journal(Path(folder) / f"{name}.{ending}")
    for broker in item.stash.get(_BROKERS, []):
        state = "running" if broker.running else f"ended with {broker.exit_code}"
        log = "\n".join(broker.whole_log.splitlines()[-_BROKER_LOG_LINES:])
        report.sections.append((f"{broker.name}, {state}", log))
