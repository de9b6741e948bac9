"""Members shared by controllers and quorums: stubs, faults, verification, state and time."""

from __future__ import annotations

import contextlib
import json
import textwrap
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from mockraft.kafka_api.journal import Exchange, VerificationError, merged, write_pcapng
from mockraft.kafka_api.journal.verification import described
from mockraft.kafka_api.private_files import opener, write_private
from mockraft.server.double import Double
from mockraft.server.state.state import State
from mockraft.server.stubs.match import Match
from mockraft.server.stubs.near_misses import NearMiss
from mockraft.server.stubs.script import Script
from mockraft.server.stubs.stub import Stub, stub
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.testing.blocking import InLoopThread, InsideT, T, Ts, blocking
from mockraft.testing.client import ask
from mockraft.testing.faults import ControllerFaults
from mockraft.testing.in_thread import LiveStub, ThreadedState
from mockraft.testing.verification import (
    PATIENCE_S,
    Requests,
    WaitTimeoutError,
    complain,
    match_of,
    verified,
    wait_for,
    wait_until,
)

if TYPE_CHECKING:
    from mockraft.kafka_api.journal.exchange import RequestT as Q
    from mockraft.kafka_api.journal.exchange import ResponseT as A
    from mockraft.wire.json_form import Json
    from mockraft.wire.kio_entities import KioEntity
    from mockraft.wire.message import RequestMessage


class DoubleApi:
    """Members shared by controllers and quorums; all of them may be called from the test's own thread.

    Requests are named as for `stub`: by API, and by keywords, which are scopes (`version`, `broker_id`, `client_id`,
    `connection`, `listener`, `node`, `principal`) and fields of the request, with `__` before an operator:
    `verify(2, "BrokerHeartbeat", broker_id=1, current_metadata_offset__gte=5)`. With a request class in place of the
    name, type checkers know the requests and responses. `since` is a mark; earlier requests are left out.
    """

    double: Double
    """The double on the event loop's side; use it through `call` only."""

    def call(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call in the thread of the event loop and return the result."""
        return function(*arguments)

    @property
    def state(self) -> State:
        """State of the controller (`brokers()`, `topics()`, `metadata_log()`), and commands that append records.

        The commands: `fence(1)`, `unfence(1)`, `elect("orders", 0, leader=2)`, `append([…])`, `snapshot()`, ….
        """
        return ThreadedState(self.double.nodes, self.call)

    @property
    def faults(self) -> ControllerFaults:
        """Faults by name, each also for the length of a block: `with controller.faults.latency(latency_ms=100):`."""
        return ControllerFaults(self.double.script.faults, self.call)

    def stub(self, *api: str | int, **match: Any) -> Stub:
        """Add a stub and define it by further calls: `.stub("BrokerHeartbeat").once().inject_error(…)`.

        Arguments are those of `mockraft.stub`. It takes effect at once, as a stub that only counts; each further call
        replaces it. The returned stub is live: `.called`, `.call_count`, `.calls`.
        """
        return LiveStub(self.add(stub(*api, **match)), self.double.script.stubs, self.call)

    def add(self, stub: Stub | Mapping[str, Json]) -> Stub:
        """Add a stub, an object or its JSON; return the live one. StubError, a ValueError."""
        added = Stub.from_json(stub) if isinstance(stub, Mapping) else stub
        return self.call(self.double.script.stubs.add, added)

    def load_stubs(self, path: str | Path) -> None:
        """Add the stubs, faults and plan of a stub file, JSON or YAML. StubFileError, a ValueError."""
        self.call(self.double.script.load, read_stub_file(Path(path)))

    def remove(self, stub: str | Stub) -> None:
        """Remove a stub, by its id or the object. KeyError."""
        self.call(self.double.script.stubs.remove, stub if isinstance(stub, str) else stub.id)

    @contextlib.contextmanager
    def stubbed(self, *stubs: Stub) -> Iterator[list[Stub]]:
        """Add stubs for the length of a block; yield the live ones. AssertionError at its end for unused ones."""
        with contextlib.ExitStack() as added:
            live = []
            for each in stubs:
                live.append(self.add(each))
                added.callback(self.remove, live[-1])
            yield live
            self._assert_used([each for each in live if not each.called])

    @property
    def stubs(self) -> list[Stub]:
        """Live stubs, in order of precedence."""
        return self.call(lambda: self.double.script.stubs.stubs)

    @property
    def scenarios(self) -> dict[str, str]:
        """State of every scenario by name."""
        return self.call(lambda: dict(self.double.script.stubs.scenarios))

    def set_scenario(self, name: str, state: str) -> None:
        """Set the state of a scenario. KeyError for a scenario without stubs."""
        self.call(self.double.script.stubs.set_scenario, name, state)

    @property
    def strict(self) -> bool:
        """True if a request that matches no stub is unexpected; it is answered all the same."""
        return self.call(lambda: self.double.script.stubs.strict)

    @strict.setter
    def strict(self, strict: bool) -> None:
        self.call(setattr, self.double.script.stubs, "strict", strict)

    def mark(self) -> int:
        """Return the current position in the journals, for `since`."""
        return self.call(lambda: max((journal.mark() for journal in self.double.journals.values()), default=0))

    def requests(self, match: Requests[Q, A] = None, *, since: int = 0, **fields: object) -> list[Exchange[Q, A]]:
        """Return the requests in the journals with their responses, oldest first."""
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
        match: Requests[Q, A] = None,
        *,
        at_least: int | None = None,
        at_most: int | None = None,
        since: int = 0,
        **fields: object,
    ) -> list[Exchange[Q, A]]:
        """Return the requests if there are `n` of them (without any number: at least one).

        The VerificationError, an AssertionError, lists the requests found, near misses, and the journal.
        """
        __tracebackhide__ = True
        if n is not None and not isinstance(n, int):
            raise TypeError(f"the number of requests comes first: verify(1, {n!r}, …), or None for at least one")
        wanted = match_of(match, fields)
        try:
            return self.call(lambda: verified(self.double, wanted, since, n, at_least, at_most))
        except VerificationError as error:
            # The frames inside mockraft do not help the test's author.
            raise error.with_traceback(None) from None

    def unmatched(self, *, since: int = 0) -> list[Exchange]:
        """Return the requests that a strict double did not expect, oldest first."""
        return self.requests(lambda exchange: exchange.unmatched, since=since)

    def near_misses(self, of: Exchange | Stub | Match, limit: int = 3) -> list[NearMiss]:
        """Return near misses, best first: of a request the nearest stubs, of a stub or match the nearest requests."""
        exchanges = self.requests()
        return self.call(self.double.script.stubs.near_misses, of, exchanges, limit)

    def assert_all_stubs_used(self) -> None:
        """Raise AssertionError for stubs that never served, with the nearest requests."""
        __tracebackhide__ = True
        self._assert_used(self.call(self.double.script.stubs.unused))

    def assert_all_faults_fired(self) -> None:
        """Raise AssertionError for faults that never took effect."""
        __tracebackhide__ = True
        complain(self.faults.unfired(), lambda fault: f"fault {fault.id} never met anything: {fault.to_json()}")

    def assert_all_expected(self) -> None:
        """Raise AssertionError for requests that a strict double did not expect, with the nearest stubs."""
        __tracebackhide__ = True
        complain(self.unmatched(), self._unexpected)

    def as_version(
        self, release: str | None, api_versions: Mapping[str, object] | Mapping[int, object] | None = None
    ) -> None:
        """Offer the APIs and features of another Kafka release ("3.9"), and other versions of some APIs.

        `{"Fetch": "4-16", "Vote": "off"}`; None restores its own. It applies from the next connection on.
        ValueError for a release or versions that there are not.
        """
        self.call(self.double.as_version, release, api_versions)

    def advance(self, ms: int) -> None:
        """Advance the clock of a double with `clock="virtual"`; else ValueError."""
        self.call(self.double.advance, ms)

    @property
    def now_ms(self) -> int:
        """Time of its clock, milliseconds since the epoch."""
        return self.call(lambda: self.double.now_ms)

    def release(self, *, client_id: str | None = None, connection: int | None = None) -> int:
        """Release a blackholed client or connection, or all; return how many."""
        return self.call(lambda: self.double.script.stubs.release(client_id=client_id, connection=connection))

    def write_journal(self, path: str | Path) -> None:
        """Write the journals into a file: packets for Wireshark into a .pcapng, else JSON lines."""
        path = Path(path)
        entries = self.call(lambda: merged(self.double.journals.values()))
        if path.suffix != ".pcapng":
            lines = "".join(json.dumps(entry.to_json(), separators=(",", ":")) + "\n" for entry in entries)
            write_private(path, lines.encode())
            return
        nodes = self.call(lambda: {n: journal.address for n, journal in self.double.journals.items()})
        with open(path, "wb", opener=opener) as file:
            write_pcapng(file, entries, nodes)

    def reset(self, *, state: bool = False) -> None:
        """Remove stubs, faults, `as_version` and journal entries; with `state` start with an empty log, too.

        `strict` stays. Brokers that know the old log stop when the log is new; ValueError then for a data directory and
        for a quorum.
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


class ControllerApi(DoubleApi):
    """Members of a single controller; the nodes of a quorum are restarted by the quorum."""

    def restart(self) -> None:
        """Restart it in place, with its log, port and journal: connections break, a broker notices a new epoch."""
        self.call(self.double.restart)

    def load(self, path: str | Path) -> None:
        """Start again with a state that `state.save` wrote, or with a snapshot of Kafka's. OSError, ValueError."""
        self.call(self.double.load, path)


class AsyncDoubleApi(DoubleApi):
    """Coroutine methods of a double in the test's own event loop."""

    async def wait_for(
        self,
        /,
        match: Requests[Q, A] = None,
        n: int = 1,
        timeout_s: float = PATIENCE_S,
        *,
        since: int = 0,
        **fields: object,
    ) -> list[Exchange[Q, A]]:
        """Wait until there are `n` requests since the mark and return them. WaitTimeoutError."""
        __tracebackhide__ = True
        try:
            return await self._run(wait_for(self.double, match, n, timeout_s, since, fields))
        except WaitTimeoutError as error:
            raise error.with_traceback(None) from None

    async def wait_until(self, /, condition: Callable[[], object], timeout_s: float = 30) -> None:
        """Wait until a condition holds: `await controller.wait_until(lambda: controller.state.broker(1).fenced)`.

        It is evaluated in the thread of the controller, so it must not block. TimeoutError.
        """
        __tracebackhide__ = True
        await self._run(wait_until(condition, timeout_s))

    @overload
    async def ask(
        self,
        /,
        request: RequestMessage[A],
        version: int | None = None,
        *,
        client_id: str | None = None,
        node: int | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> A: ...
    @overload
    async def ask(
        self,
        /,
        request: KioEntity,
        version: int | None = None,
        *,
        client_id: str | None = None,
        node: int | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Any: ...
    async def ask(
        self,
        /,
        request: Any,
        version: int | None = None,
        *,
        client_id: str | None = None,
        node: int | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Any:
        """Ask as a client would, on its own connection, and return the response; see `mockraft.testing.client.ask`."""
        return await self._run(ask(self.double, request, version, client_id, node, timeout_s))

    async def _run(self, coroutine: Coroutine[object, object, T]) -> T:
        return await coroutine


class BlockingDoubleApi(InLoopThread[InsideT], DoubleApi):
    """Blocking methods of a double in a thread of its own."""

    wait_for = blocking(AsyncDoubleApi.wait_for)
    wait_until = blocking(AsyncDoubleApi.wait_until)
    ask = blocking(AsyncDoubleApi.ask)


def script_of(strict: bool, stubs: str | Path | Iterable[Stub]) -> Script:
    """Return the script that a double begins with, from stubs or a stub file. StubError, StubFileError."""
    script = Script()
    script.stubs.strict = strict
    if isinstance(stubs, str | Path):
        script.load(read_stub_file(Path(stubs)))
    else:
        for each in stubs:
            script.stubs.add(each)
    return script
