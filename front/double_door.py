"""What a test puts in the way of a controller, or quorum, and asks of it: alike with asyncio and without."""

from __future__ import annotations

import contextlib
import functools
import json
import textwrap
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from mockraft.asking import ask
from mockraft.fault_door import FaultDoor
from mockraft.loop_thread import InLoopThread, T
from mockraft.server.double import Double
from mockraft.server.journal import Exchange, VerificationError, merged, write_pcapng
from mockraft.server.journal.verification import described
from mockraft.server.state.state import State
from mockraft.server.stubs.match import Match
from mockraft.server.stubs.near_misses import NearMiss
from mockraft.server.stubs.script import Script
from mockraft.server.stubs.stub import Stub, stub
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.verifying import PATIENCE_S, Requests, WaitTimeoutError, complain, match_of, verified, wait_for


class Call(Protocol):
    """What calls in the thread of the event loop."""

    def __call__(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call and give the result."""


class DoubleDoor:
    """What controllers and quorums have in common; all of it may be called from the test's own thread.

    Where requests are looked for, they are named as for `stub`: by API, and by keywords, which are the scopes
    (`version`, `broker_id`, `client_id`, `connection`, `listener`, `node`, `principal`) and fields of the request, with
    `__` before an operator: `verify(2, "BrokerHeartbeat", broker_id=1, current_metadata_offset__gte=5)`.
    `since` is a mark: what came before it is left out.
    """

    double: Double
    """What all of this stands on; touch it in the thread of its event loop only (`call`)."""

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call in the thread of the event loop, and give the result."""
        return function(*arguments)

    @property
    def state(self) -> State:
        """What the controller knows (`brokers()`, `topics()`, `metadata_log()`), and commands that leave records.

        The commands: `fence(1)`, `unfence(1)`, `elect("orders", 0, leader=2)`, `append([…])`, `snapshot()`, ….
        """
        return cast(State, _InThread(self.double.state, self.call))

    @property
    def faults(self) -> FaultDoor:
        """Faults by name, each also for the length of a block: `with controller.faults.latency(latency_ms=100):`."""
        return FaultDoor(self.double.script.faults, self.call)

    def stub(self, *api: str | int, **match: Any) -> Stub:
        """Put a stub in the way and go on saying what it does: `.stub("BrokerHeartbeat").once().inject_error(…)`.

        Arguments are those of `mockraft.stub`. It is in force at once, as one that only counts; each further word
        puts another into its place. What is given back is the live one: `.called`, `.call_count`, `.calls`.
        """
        return cast(Stub, _Said(self, self.add(stub(*api, **match))))

    def add(self, stub: Stub | Mapping[str, Any]) -> Stub:
        """Put a stub in the way, an object or its JSON; gives the live one. StubError, a ValueError."""
        added = Stub.from_json(stub) if isinstance(stub, Mapping) else stub
        return self.call(self.double.script.rack.add, added)

    def load_stubs(self, path: str | Path) -> None:
        """Put in the way what a stub file says: stubs, faults, a plan; JSON or YAML. StubFileError, a ValueError."""
        self.call(self.double.script.load, read_stub_file(Path(path)))

    def remove(self, stub: str | Stub) -> None:
        """Take a stub away, by its id or as it is. KeyError."""
        self.call(self.double.script.rack.remove, stub if isinstance(stub, str) else stub.id)

    @contextlib.contextmanager
    def stubbed(self, *stubs: Stub) -> Iterator[list[Stub]]:
        """Stubs for the length of a block; gives the live ones. AssertionError at its end for one that never served."""
        with contextlib.ExitStack() as added:
            live = []
            for each in stubs:
                live.append(self.add(each))
                added.callback(self.remove, live[-1])
            yield live
            self._assert_used([each for each in live if not each.called])

    @property
    def stubs(self) -> list[Stub]:
        """The live stubs, in the order in which they are asked."""
        return self.call(lambda: self.double.script.rack.stubs)

    @property
    def scenarios(self) -> dict[str, str]:
        """The state of every scenario, by its name."""
        return self.call(lambda: dict(self.double.script.rack.scenarios))

    def set_scenario(self, name: str, state: str) -> None:
        """Put a scenario into a state. KeyError for one that no stub is part of."""
        self.call(self.double.script.rack.set_scenario, name, state)

    @property
    def strict(self) -> bool:
        """Whether a request that no stub is about is unexpected; it is answered all the same."""
        return self.call(lambda: self.double.script.rack.strict)

    @strict.setter
    def strict(self, strict: bool) -> None:
        self.call(setattr, self.double.script.rack, "strict", strict)

    def mark(self) -> int:
        """This moment, for `since`."""
        return self.call(lambda: max((journal.mark() for journal in self.double.journals.values()), default=0))

    def requests(self, match: Requests = None, *, since: int = 0, **fields: Any) -> list[Exchange]:
        """The requests that were asked, with their answers, oldest first, as far as the journals hold them."""
        wanted = match_of(match, fields)
        return self.call(
            lambda: [
                entry
                for entry in merged(self.double.journals.values(), since)
                if isinstance(entry, Exchange) and (wanted is None or wanted(entry))
            ]
        )

    def verify(
        self,
        n: int | None = None,
        match: Requests = None,
        *,
        at_least: int | None = None,
        at_most: int | None = None,
        since: int = 0,
        **fields: Any,
    ) -> list[Exchange]:
        """The requests, when they were asked `n` times (without any number: at least once).

        VerificationError, an AssertionError, says what was found, what came near, and what happened.
        """
        __tracebackhide__ = True
        wanted = match_of(match, fields)
        try:
            return self.call(lambda: verified(self.double, wanted, since, n, at_least, at_most))
        except VerificationError as error:
            # Where it was looked for, and in which thread, is of no interest to whom it is told.
            raise error.with_traceback(None) from None

    def unmatched(self, *, since: int = 0) -> list[Exchange]:
        """The requests that a strict double did not expect, oldest first."""
        return self.requests(lambda exchange: exchange.unmatched, since=since)

    def near_misses(self, of: Exchange | Stub | Match, limit: int = 3) -> list[NearMiss]:
        """What came nearest, best first: to a request the stubs, to a stub or match the requests."""
        exchanges = self.requests()
        return self.call(self.double.script.rack.near_misses, of, exchanges, limit)

    def assert_all_stubs_used(self) -> None:
        """AssertionError that names every stub that never served, with what came nearest to it."""
        __tracebackhide__ = True
        self._assert_used(self.call(self.double.script.rack.unused))

    def assert_all_faults_fired(self) -> None:
        """AssertionError that names every fault that never met anything."""
        __tracebackhide__ = True
        complain(self.faults.unfired(), lambda fault: f"fault {fault.id} never met anything: {fault.to_json()}")

    def assert_all_expected(self) -> None:
        """AssertionError that names every request that a strict double did not expect, with the nearest stubs."""
        __tracebackhide__ = True
        complain(self.unmatched(), self._unexpected)

    def as_version(self, release: str | None, api_versions: Mapping[str, Any] | None = None) -> None:
        """Pass for a controller of another Kafka release ("3.9"), and offer other versions of some APIs.

        `{"Fetch": "4-16", "Vote": "off"}`; None is what it is by itself. It holds from the next connection on.
        ValueError.
        """
        self.call(self.double.as_version, release, api_versions)

    def advance(self, ms: int) -> None:
        """Move the clock on, of a double that was made with `clock="virtual"`; else ValueError."""
        self.call(self.double.advance, ms)

    @property
    def now_ms(self) -> int:
        """The time of its clock, milliseconds since the epoch."""
        return self.call(lambda: self.double.now_ms)

    def release(self, *, client_id: str | None = None, connection: int | None = None) -> int:
        """Answer a blackholed client or connection again, or all; gives how many."""
        return self.call(lambda: self.double.script.rack.release(client_id=client_id, connection=connection))

    def write_journal(self, path: str | Path) -> None:
        """Write what the journals hold into a file: packets for Wireshark into a .pcapng, else JSON lines."""
        path = Path(path)
        entries = self.call(lambda: merged(self.double.journals.values()))
        if path.suffix != ".pcapng":
            path.write_text("".join(json.dumps(entry.to_json(), separators=(",", ":")) + "\n" for entry in entries))
            return
        nodes = self.call(lambda: {n: journal.address for n, journal in self.double.journals.items()})
        with path.open("wb") as file:
            write_pcapng(file, entries, nodes)

    def reset(self, *, state: bool = False) -> None:
        """Take away stubs, faults, `as_version` and what the journals hold; with `state` begin with an empty log, too.

        `strict` stays. A new log has brokers that know the old one end; ValueError then for a data directory and for a
        quorum.
        """
        strict = self.strict
        self.call(lambda: self.double.reset(state=state))
        self.strict = strict

    def _assert_used(self, unused: list[Stub]) -> None:
        __tracebackhide__ = True
        complain(unused, lambda each: f"stub {each.id} was never used: {described(each.match)}" + self._near(each))

    def _unexpected(self, exchange: Exchange) -> str:
        return f"request #{exchange.id} was not expected: {exchange!r}" + self._near(exchange)

    def _near(self, of: Exchange | Stub) -> str:
        return "".join("\n" + textwrap.indent(miss.describe(), "  ") for miss in self.near_misses(of))


class ControllerDoor(DoubleDoor):
    """What a controller alone has beside that; the nodes of a quorum are restarted by the quorum."""

    def restart(self) -> None:
        """Restart it in place, with its log, port and journal: connections break, a broker notices a new epoch."""
        self.call(self.double.restart)

    def load(self, path: str | Path) -> None:
        """Begin anew with a state that `state.save` wrote, or with a snapshot of Kafka's. OSError, ValueError."""
        self.call(self.double.load, path)


class AwaitingDoor(DoubleDoor):
    """What waits, of a double in the test's own event loop."""

    async def wait_for(
        self, match: Requests = None, n: int = 1, timeout_s: float = PATIENCE_S, *, since: int = 0, **fields: Any
    ) -> list[Exchange]:
        """The requests, as soon as there are `n` of them since the mark, those before now too. WaitTimeoutError."""
        __tracebackhide__ = True
        try:
            return await self._run(wait_for(self.double, match, n, timeout_s, since, fields))
        except WaitTimeoutError as error:
            raise error.with_traceback(None) from None

    async def ask(
        self,
        request: Any,
        version: int | None = None,
        *,
        client_id: str | None = None,
        node: int | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Any:
        """Ask as a client would, on a connection of its own, and give the response; see `mockraft.asking.ask`."""
        return await self._run(ask(self.double, request, version, client_id, node, timeout_s))

    async def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await coroutine


class BlockingDoor(InLoopThread, DoubleDoor):
    """What waits, of a double in a thread of its own: the test's thread waits with it."""

    def wait_for(
        self, match: Requests = None, n: int = 1, timeout_s: float = PATIENCE_S, *, since: int = 0, **fields: Any
    ) -> list[Exchange]:
        """The requests, as soon as there are `n` of them since the mark, those before now too. WaitTimeoutError."""
        __tracebackhide__ = True
        try:
            return self._thread.run(wait_for(self.double, match, n, timeout_s, since, fields))
        except WaitTimeoutError as error:
            raise error.with_traceback(None) from None

    def ask(
        self,
        request: Any,
        version: int | None = None,
        *,
        client_id: str | None = None,
        node: int | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Any:
        """Ask as a client would, on a connection of its own, and give the response; see `mockraft.asking.ask`."""
        return self._thread.run(ask(self.double, request, version, client_id, node, timeout_s))


def script_of(strict: bool, stubs: str | Path | Iterable[Stub]) -> Script:
    """What a double begins with: stubs, or those of a stub file. StubError, StubFileError."""
    script = Script()
    script.rack.strict = strict
    if isinstance(stubs, str | Path):
        script.load(read_stub_file(Path(stubs)))
    else:
        for each in stubs:
            script.rack.add(each)
    return script


class _InThread:
    """Stands for an object whose methods are to be called in the thread of the event loop."""

    def __init__(self, target: object, call: Call) -> None:
        self._target = target
        self._call = call

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)
        return functools.wraps(method)(
            lambda *arguments, **options: self._call(functools.partial(method, *arguments, **options))
        )


class _Said:
    """Stands for a live stub; what is further said of it puts another into its place."""

    def __init__(self, door: DoubleDoor, live: Stub) -> None:
        self._door = door
        self._live = live

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._live, name)
        return functools.wraps(found)(functools.partial(self._say, found)) if callable(found) else found

    def _say(self, word: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        said = word(*arguments, **options)
        if not isinstance(said, Stub):
            return said
        self._live = self._door.call(self._place, said)
        return self

    def _place(self, said: Stub) -> Stub:
        rack = self._door.double.script.rack
        if said.id == self._live.id:
            return rack.replace(said.id, said)
        live = rack.add(said)
        rack.remove(self._live)
        return live
