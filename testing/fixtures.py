"""Start, checks and reports of mockraft's pytest fixtures; imported when the first of them is used."""

from __future__ import annotations

import dis
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import pytest
from mockraft.kafka.jars import KafkaUnavailableError, classpath, java
from mockraft.kafka.processes import KafkaBroker
from mockraft.kafka_api.journal import VerificationError, merged
from mockraft.kafka_api.journal import report as journal_report
from mockraft.kafka_api.options import check_option
from mockraft.server.complaints import complain
from mockraft.testing.controller import AwaitedController, Controller, SyncController
from mockraft.testing.double import StartedDouble
from mockraft.testing.lab.trial import STUBS
from mockraft.testing.options import TEST_HEARTBEAT_INTERVAL_MS, ControllerOptions
from mockraft.testing.plugin_settings import LIVE, setting
from mockraft.testing.quorum import Quorum, SyncQuorum
from mockraft.wire.names import did_you_mean

RunningDouble: TypeAlias = SyncController | AwaitedController | SyncQuorum
T = TypeVar("T")

_BROKERS = pytest.StashKey[list[KafkaBroker]]()
_JUDGED = ("strict", "assert_all_used")
_ABOUT_A_CALL = (AttributeError, LookupError, TypeError, ValueError)
_CONTROLLERS = 3
_OF_A_QUORUM = ("controllers", "observers")
_DOUBLES = ("mockraft", "mockraft_quorum", "mockraft_async", "mockraft_session")
_BROKER_LOG_LINES = 12
_NAME_LENGTH_MAX = 200


@dataclass
class Watched:
    """A double that runs for a fixture; `given` are the options that are not its marker's."""

    double: RunningDouble
    inside: StartedDouble
    request: pytest.FixtureRequest
    given: Mapping[str, object]
    began_ms: int = 0
    mark: int = 0

    def begin(self, node: pytest.Item) -> None:
        """Begin a test: it is judged by what happens from now on."""
        self.double.strict = _Options(node, self.given).flag("strict")
        self.began_ms = self.double.now_ms
        self.mark = self.double.mark()

    def concerns(self, item: pytest.Item) -> bool:
        """Return True if the test uses the double: its own, or the session's that it requested."""
        # What a test asks for by name as it runs (`request.getfixturevalue`) stands nowhere public.
        asked_for = getattr(getattr(item, "_request", None), "_fixture_defs", {})
        names = (*getattr(item, "fixturenames", ()), *asked_for)
        return self.request.scope == "function" or self.request.fixturename in names

    def complaints(self, item: pytest.Item) -> Iterator[str]:
        """Yield the reasons to fail a test that passed."""
        markers = _Options(item, self.given)
        # A schedule of the laboratory may leave stubs unused, its own and the test's.
        unused = markers.flag("assert_all_used") and not setting(markers.config, "lab")
        try:
            complain(self.double.complaints(since=self.mark, unused=unused))
        except AssertionError as error:
            yield str(error)


class _Options:
    """Options of a test's markers, the nearest first, over those of the session and of the command line."""

    def __init__(self, node: pytest.Item, given: Mapping[str, object]) -> None:
        self.config: pytest.Config = node.config
        self.given = dict(given)
        for mark in reversed(list(node.iter_markers("mockraft"))):
            if mark.args:
                about = f"@pytest.mark.mockraft takes options by name, as brokers=2, not {mark.args}"
                pytest.fail(about, pytrace=False)
            self.given |= mark.kwargs

    def flag(self, name: str) -> bool:
        """An option that is yes or no."""
        if name in self.given:
            _checked(lambda: check_option(name, self.given[name], bool))
            return bool(self.given[name])
        return setting(self.config, name).lower() in ("true", "yes", "on", "1")

    def of_the_double(self, *others: str) -> dict[str, object]:
        """The options of what is started, without those of the plugin and `others`."""
        return {name: value for name, value in self.given.items() if name not in (*_JUDGED, *others)}


def running_controller(
    request: pytest.FixtureRequest, options: Mapping[str, object], kind: Callable[..., Any]
) -> Iterator[Any]:
    """A controller for a fixture, as a facade of this kind."""
    markers = _Options(request.node, options)
    given = [name for name in _OF_A_QUORUM if name in markers.given]
    if given and "mockraft_quorum" not in request.fixturenames:
        about = f"{given[0]}={markers.given[given[0]]}: several controllers are the fixture mockraft_quorum"
        pytest.fail(f"@pytest.mark.mockraft or mockraft_options: {about}", pytrace=False)
    made = _made(request, Controller, markers.of_the_double(*_OF_A_QUORUM))
    with kind(made) as controller, _watched(controller, made, request, options):
        yield controller


def running_quorum(request: pytest.FixtureRequest, options: Mapping[str, object]) -> Iterator[SyncQuorum]:
    """A quorum for a fixture."""
    markers = _Options(request.node, options)
    quorum = _made(request, Quorum, {"controllers": _CONTROLLERS, **markers.of_the_double()})
    with SyncQuorum(quorum) as running, _watched(running, quorum, request, options):
        yield running


def _made(request: pytest.FixtureRequest, kind: Callable[..., T], options: Mapping[str, object]) -> T:
    lab = setting(request.config, "lab")
    schedule = {"stubs": Path(lab) / STUBS} if lab else {}
    known = (*ControllerOptions.__annotations__, *_JUDGED, *_OF_A_QUORUM)
    if unknown := next((name for name in options if name not in known), None):
        about = f"there is no option {unknown}; {did_you_mean(unknown, known)}"
        pytest.fail(f"@pytest.mark.mockraft or mockraft_options: {about}", pytrace=False)
    return _checked(lambda: kind(**schedule, **options))


def _checked(options: Callable[[], T]) -> T:
    """Return the result; what is wrong with an option is the failure of the test."""
    try:
        return options()
    except (TypeError, ValueError) as error:
        wrong = str(error)
    pytest.fail(f"@pytest.mark.mockraft or mockraft_options: {wrong}", pytrace=False)


@contextmanager
def _watched(
    double: RunningDouble, inside: StartedDouble, request: pytest.FixtureRequest, given: Mapping[str, object]
) -> Iterator[None]:
    live = request.config.stash[LIVE]
    watched = Watched(double, inside, request, given)
    watched.begin(request.node)
    inside.is_judged = True
    live.insert(0, watched) if request.scope == "session" else live.append(watched)
    try:
        yield
    finally:
        live.remove(watched)
        if lab := setting(request.config, "lab"):
            double.write_journal(Path(lab) / f"{_file_name(request.node, request)}.jsonl")


def double_of(request: pytest.FixtureRequest) -> RunningDouble:
    """Return the double that a test uses; a controller is started for one that uses none."""
    name = next((each for each in _DOUBLES if each in request.fixturenames), "mockraft")
    double: RunningDouble = request.getfixturevalue(name)
    return double


def simulated_brokers(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return a function that starts simulated brokers for a test."""

    def start(broker_id: int = 1, *, of: RunningDouble | None = None, **options: Any) -> Any:
        return (of or double_of(request)).start_broker(broker_id, **options)

    return start


def real_brokers(request: pytest.FixtureRequest) -> Iterator[Callable[..., KafkaBroker]]:
    """Yield a function that starts Kafka's own brokers for a test."""
    folder: Path = request.getfixturevalue("tmp_path")
    brokers = request.node.stash.setdefault(_BROKERS, [])

    def start(broker_id: int = 1, *, of: RunningDouble | None = None, **options: Any) -> KafkaBroker:
        double = of or double_of(request)
        quick = {"broker.heartbeat.interval.ms": str(TEST_HEARTBEAT_INTERVAL_MS)}
        options["properties"] = quick | options.get("properties", {})
        broker = KafkaBroker(broker_id, folder / f"broker-{broker_id}", double.cluster_id, double.bootstrap, **options)
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
    """Return the reasons to fail a test that passed; empty if there are none."""
    return "\n\n".join(text for watched in live if watched.concerns(item) for text in watched.complaints(item))


def shorten(error: BaseException, item: pytest.Item, live: list[Watched]) -> None:
    """Leave frames of mockraft, and a journal that is shown anyway, out of an error."""
    if item.config.getoption("fulltrace"):
        return
    end_at_call(error)
    if not isinstance(error, VerificationError) or not int(setting(item.config, "journal_lines")):
        return
    if any(watched.inside is error.double and watched.concerns(item) for watched in live):
        error.args = (error.findings,)


def _file_name(node: pytest.Item | pytest.Collector, request: pytest.FixtureRequest) -> str:
    """Return a name for files about a test's double."""
    return re.sub(r"[^\w.-]+", "-", f"{node.nodeid}.{request.fixturename}").strip("-")[-_NAME_LENGTH_MAX:]


def add_journals(
    report: pytest.TestReport, item: pytest.Item, live: list[Watched], error: BaseException | None
) -> None:
    """Add the journals of a failing test's doubles to its report, and write the files of --mockraft-journal-dir."""
    lines = int(setting(item.config, "journal_lines"))
    folder = setting(item.config, "journal_dir")
    for watched in live:
        if not watched.concerns(item):
            continue
        entries = merged(watched.double.journals.values())
        # What is wrong with a call is in its error; an empty journal adds nothing to it.
        if lines and (entries or not isinstance(error, _ABOUT_A_CALL)):
            title = f"mockraft journal ({watched.request.fixturename})"
            report.sections.append(
                (title, journal_report(entries, watched.began_ms, lines) or "no requests were received")
            )
        if folder:
            name = _file_name(item, watched.request)
            Path(folder).mkdir(parents=True, exist_ok=True)
            for ending in ("jsonl", "pcapng"):
                watched.double.write_journal(Path(folder) / f"{name}.{ending}")
    for broker in item.stash.get(_BROKERS, []):
        state = "running" if broker.running else f"ended with {broker.exit_code}"
        log = "\n".join(broker.whole_log.splitlines()[-_BROKER_LOG_LINES:])
        report.sections.append((f"{broker.name}, {state}", log))


_RAISE = dis.opmap["RAISE_VARARGS"]
_ADAPTERS = ("mockraft.testing.facades", "mockraft.testing.faults")
"""Modules whose wrappers pass a call on: a TypeError there is about the arguments of the call."""
_RUNNERS = ("_pytest", "pluggy", "pytest_asyncio")


def end_at_call(error: BaseException) -> None:
    """End the traceback of a refusal at the call into mockraft; those of other errors stay."""
    if not _is_refusal(error):
        return
    frames = list(_frames(error))
    modules = [_module(each) for each in frames]
    own = 1 + max((at for at, module in enumerate(modules) if module.startswith(_RUNNERS)), default=-1)
    call = next((at for at in range(own, len(frames)) if _is_ours(frames[at])), 0)
    if call > own:
        frames[call - 1].tb_next = None
        hidden = error.__cause__ or error.__context__
        if hidden is not None and any(map(_is_ours, _frames(hidden))):
            error.__cause__, error.__suppress_context__ = None, True


def _is_refusal(error: BaseException) -> bool:
    """Return True if mockraft raised an error on purpose, about a call from outside."""
    frames = list(_frames(error))
    if not frames or not isinstance(error, Exception) or type(error) is AssertionError:
        return False
    innermost = frames[-1]
    module = _module(innermost)
    if isinstance(error, TypeError) and module in _ADAPTERS:
        return True
    code = innermost.tb_frame.f_code.co_code
    return _is_ours(innermost) and code[innermost.tb_lasti] == _RAISE


def _frames(error: BaseException) -> Iterator[TracebackType]:
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def _module(at: TracebackType) -> str:
    return str(at.tb_frame.f_globals.get("__name__", ""))


def _is_ours(at: TracebackType) -> bool:
    module = _module(at)
    if module == "enum":  # Python 3.11 raises the error for an unknown member there.
        module = getattr(at.tb_frame.f_locals.get("cls"), "__module__", "")
    return module.partition(".")[0] == "mockraft"
