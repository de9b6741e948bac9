"""A running controller or quorum as a test double: stubs, verification, journal, state and time.

`mockraft serve` and the HTTP API use a `Double`; `Controller` and `Quorum` of `mockraft.testing` are doubles that also
start what runs. Everything here is used in the thread of the event loop; other threads have a facade of it
(`mockraft.testing.facades`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack, overload

from mockraft.files.private_files import opener, write_private
from mockraft.kafka_api.clock import Clock, VirtualClock
from mockraft.kafka_api.journal import Exchange, Journal, VerificationError, matching, merged, pcapng_pieces, verify
from mockraft.kafka_api.listener import AnyListener, Observed
from mockraft.kafka_api.security import SECURITY_PROTOCOLS
from mockraft.kafka_api.shell import Shell
from mockraft.releases import DEFAULT, release
from mockraft.server.complaints import Complaint, complain, failures, unexpected_requests, unfired_faults, unused_stubs
from mockraft.server.controller.controller import STANDBY
from mockraft.server.controller.settings.offers import Offer, read_ranges
from mockraft.server.raft.states import Role
from mockraft.server.request_types import finds_requests
from mockraft.server.running import NothingRunsError, RunningController, most_advanced, quorum_failure, running_node
from mockraft.server.scripted import ScriptedRequests
from mockraft.server.state.state import State
from mockraft.server.stubs.match import Match
from mockraft.server.stubs.near_misses import NearMiss
from mockraft.server.stubs.script import Script
from mockraft.server.stubs.stub import Stub, stub
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.server.toxic_links import ToxicLinks
from mockraft.server.verification import (
    PATIENCE_S,
    Requests,
    WaitTimeoutError,
    Wanted,
    match_of,
    requests_of,
    wait_until,
)
from mockraft.wire import kio_entities
from mockraft.wire.client import connect
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.kafka_api.journal.exchange import RequestT as Q
    from mockraft.kafka_api.journal.exchange import ResponseT as A
    from mockraft.server.request_types import Conditions
    from mockraft.server.stubs.faults.fault import ConnectionMatch
    from mockraft.wire.api_keys import ApiName
    from mockraft.wire.json_form import Json
    from mockraft.wire.kio_entities import KioEntity
    from mockraft.wire.message import RequestMessage

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


BROKER_JOURNAL_ENTRIES_MAX = 2_000
BROKER_JOURNAL_BYTES_MAX = 2 << 20
"""Bounds of each simulated broker's journal: there may be hundreds that fetch all the time."""


class Double:
    """A running controller or quorum. `nodes` returns the running nodes by node id.

    Requests are named as for `stub`: by API, and by keywords, which are scopes (`version`, `broker_id`, `client_id`,
    `connection`, `listener`, `node`, `principal`) and fields of the request, with `__` before an operator:
    `verify(2, "BrokerHeartbeat", broker_id=1, current_metadata_offset__gte=5)`. Type checkers know the requests and
    responses of an API whose name is a literal, and of a request class. `since` is a mark; earlier requests are left
    out.
    """

    def __init__(self, nodes: Callable[[], Mapping[int, RunningController]], script: Script) -> None:
        self.nodes = nodes
        self.script = script
        self._known_clock: Clock | None = None
        self._brokers_journals: dict[int, Journal] = {}
        script.faults.double = self
        script.stubs.check = script.faults.check = self._check_reach

    def _check_reach(self, match: Match | ConnectionMatch) -> None:
        """Raise StubError if no request, or connection, can meet the match."""
        names = self._listener_names()
        with contextlib.suppress(RuntimeError):  # none runs
            nodes = self._controllers_journals()
            listeners = names | SECURITY_PROTOCOLS.keys() if names else ()
            match.check_reach(nodes, self._brokers_journals, listeners)

    def _listener_names(self) -> set[str]:
        """Return the names of the controllers' listeners."""
        return {running.config.controller_listener_name for running in self._nodes_now().values()}

    def _wanted(self, match: Requests[Q, A], fields: Mapping[str, object]) -> Wanted:
        """Return the test for requests. StubError if no request can meet it."""
        wanted = match_of(match, fields)
        if isinstance(wanted, Match):
            self._check_reach(wanted)
        return wanted

    def _nodes_now(self) -> Mapping[int, RunningController]:
        """Return the nodes that run: none before a double begins, and after its end."""
        with contextlib.suppress(RuntimeError):
            return self.nodes()
        return {}

    def call(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call in the thread of the event loop and return the result."""
        return function(*arguments)

    @cached_property
    def state(self) -> State:
        """State of the controller (`brokers()`, `topics()`, `metadata_log()`), and commands that append records.

        The commands: `fence(1)`, `unfence(1)`, `elect("orders", 0, leader=2)`, `append([…])`, `snapshot()`, ….
        """
        return State(self.nodes)

    def stub(self, *api: ApiName | int, **match: Unpack[Conditions]) -> Stub:
        """Add a stub and define it by further calls: `.stub("BrokerHeartbeat").once().inject_error(…)`.

        Arguments are those of `mockraft.stub`. It takes effect at once, as a stub that only counts; each further call
        changes it. The returned stub is live: `.called`, `.call_count`, `.calls`.
        """
        return self.add(stub(*api, **match))

    def add(self, stub: Stub | Mapping[str, Json]) -> Stub:
        """Add a stub, an object or its JSON; return the live one. StubError, a ValueError."""
        return self.script.stubs.add(Stub.from_json(stub) if isinstance(stub, Mapping) else stub)

    def load_stubs(self, path: str | Path) -> None:
        """Add the stubs, faults and plan of a stub file, JSON or YAML. GivenFileError, a ValueError."""
        self.script.load(read_stub_file(Path(path)))

    def remove(self, stub: str | Stub) -> None:
        """Remove a stub, by its id or the object. KeyError."""
        self.script.stubs.remove(stub)

    @contextlib.contextmanager
    def stubbed(self, *stubs: Stub) -> Iterator[list[Stub]]:
        """Add stubs for the length of a block; yield the live ones. AssertionError at its end for unused ones."""
        with contextlib.ExitStack() as added:
            live = []
            for each in stubs:
                live.append(self.add(each))
                added.callback(self.remove, live[-1])
            yield live
            complain(unused_stubs(self.script.stubs, self.requests(), live))

    @property
    def stubs(self) -> list[Stub]:
        """Live stubs, in order of precedence."""
        return self.script.stubs.stubs

    @property
    def scenarios(self) -> dict[str, str]:
        """State of every scenario by name."""
        return dict(self.script.stubs.scenarios)

    def set_scenario(self, name: str, state: str) -> None:
        """Set the state of a scenario. KeyError for a scenario without stubs."""
        self.script.stubs.set_scenario(name, state)

    @property
    def strict(self) -> bool:
        """True if a request that matches no stub is unexpected; it is answered all the same."""
        return self.script.stubs.strict

    @strict.setter
    def strict(self, strict: bool) -> None:
        self.script.stubs.strict = strict

    @property
    def journals(self) -> dict[int, Journal]:
        """Journals of all controllers, killed ones included, and of the simulated brokers, by node id."""
        return self._controllers_journals() | self._brokers_journals

    def _controllers_journals(self) -> dict[int, Journal]:
        return {node_id: running.node.journal for node_id, running in self.nodes().items()}

    def observe_broker(self, broker_id: int) -> Observed:
        """Return a simulated broker's journal, one of `journals` from now on, and its listener's stubs and faults."""
        config, ids = self.leading.config, self.script.entry_ids
        made = Journal(
            min(config.journal_entries_max, BROKER_JOURNAL_ENTRIES_MAX),
            min(config.journal_bytes_max, BROKER_JOURNAL_BYTES_MAX),
            node_id=broker_id,
            numbers=ids,
            show_secrets=config.show_secrets,
        )
        journal = self._brokers_journals.setdefault(broker_id, made)
        journal.at_broker = True
        journal.topic_name = self._topic_name

        @cache
        def scripted(listener: AnyListener) -> ScriptedRequests:
            return ScriptedRequests(self.script.stubs, listener, broker_id, at_broker=True)

        def scripts(listener: AnyListener) -> ScriptedRequests | None:
            return scripted(listener) if self.script.stubs.is_armed else None

        def links(shell: Shell) -> ToxicLinks:
            return ToxicLinks(shell, self.script.faults, broker_id, at_broker=True)

        return Observed(journal, scripts, self.script.stubs.on_release, links)

    def _topic_name(self, topic_id: bytes) -> str | None:
        names = (running.node.journal.topic_name(topic_id) for running in self._nodes_now().values())
        return next(filter(None, names), None)

    def mark(self) -> int:
        """Return the current position in the journals, for `since`."""
        return max((journal.mark() for journal in self.journals.values()), default=0)

    @finds_requests
    def requests(self, match: Requests[Q, A] = None, *, since: int = 0, **fields: object) -> list[Exchange[Q, A]]:
        """Return the requests in the journals with their responses, oldest first."""
        return list(matching(merged(self.journals.values(), since), self._wanted(match, fields)))

    def verify(
        self,
        n: int | None = None,
        match: Requests[Q, A] = None,
        *,
        at_least: int | None = None,
        at_most: int | None = None,
        since: int = 0,
        **fields: Unpack[Conditions],
    ) -> list[Exchange[Q, A]]:
        """Return the requests if there are `n` of them (without any number: at least one).

        The VerificationError, an AssertionError, lists the requests found, near misses, and the journal. StubError, a
        ValueError, for a match that no request can meet.
        """
        __tracebackhide__ = True
        if n is not None and not isinstance(n, int):
            raise TypeError(f"the number of requests comes first: verify(1, {n!r}, …), or None for at least one")
        return self._verified(self._wanted(match, fields), since, n, at_least, at_most)

    def _verified(
        self, wanted: Wanted, since: int, n: int | None, at_least: int | None = None, at_most: int | None = None
    ) -> list[Exchange]:
        def near(exchanges: Sequence[Exchange]) -> list[str]:
            misses = self.script.stubs.near_misses(wanted, exchanges) if isinstance(wanted, Match) else ()
            return [miss.describe() for miss in misses]

        __tracebackhide__ = True
        entries = merged(self.journals.values(), since)
        try:
            return verify(entries, wanted, n, at_least=at_least, at_most=at_most, near=near)
        except VerificationError as error:
            error.double = self
            # The frames inside mockraft do not help the test's author.
            raise error.with_traceback(None) from None

    async def wait_for(
        self,
        /,
        match: Requests[Q, A] = None,
        n: int = 1,
        timeout_s: float = PATIENCE_S,
        *,
        since: int = 0,
        **fields: Unpack[Conditions],
    ) -> list[Exchange[Q, A]]:
        """Wait until there are `n` requests since the mark and return them. WaitTimeoutError."""
        __tracebackhide__ = True
        wanted = match_of(match, fields)
        try:
            return await requests_of(lambda: self.journals.values(), wanted, n, since, timeout_s)
        except TimeoutError:
            try:
                return self._verified(wanted, since, None, at_least=n)
            except VerificationError as error:
                late = WaitTimeoutError(f"waited {timeout_s:g} s: {error.findings}", error.journal)
                late.double = self
                raise late from None

    async def wait_until(self, /, condition: Callable[[], object], timeout_s: float = 30) -> None:
        """Wait until a condition holds: `await controller.wait_until(lambda: controller.state.broker(1).fenced)`.

        It is evaluated in the thread of the controller, so it must not block. TimeoutError.
        """
        __tracebackhide__ = True
        await wait_until(condition, timeout_s)

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
        """Send a request as a client would, on a connection of its own without a handshake; return the response.

        It goes to the active controller, or to the `node` with this id, in `version` or its newest stable version. A
        kio entity is answered with a kio entity. DisconnectedError when the connection ends or no response comes in
        time, TypeError for an object that is no message, WireError for a message that cannot be encoded or decoded,
        KeyError for a node that does not run.
        """
        is_kio = kio_entities.is_kio(request)
        message, entity_version = kio_entities.from_kio(request) if is_kio else (request, None)
        if not isinstance(message, Message):
            raise TypeError(f"ask takes a request message, such as BrokerHeartbeatRequest(…), not {message!r}")
        newest = message.max_version - (1 if message.latest_version_unstable else 0)
        version = next(each for each in (version, entity_version, newest) if each is not None)
        running = most_advanced(self.nodes()) if node is None else self.nodes()[node]
        connection = await connect(
            running.config.voter_host,
            running.config.voter_port,
            client_id=client_id,
            handshake=False,
            messages=running.node.messages,
            security=running.config.own_client_security,
        )
        try:
            response = await connection.send(message, version=version, timeout_ms=round(timeout_s * 1000))
        finally:
            await connection.close()
        return kio_entities.to_kio(response, version) if is_kio else response

    def unmatched(self, *, since: int = 0) -> list[Exchange]:
        """Return the requests that a strict double did not expect, oldest first."""
        return self.requests(lambda exchange: exchange.unmatched, since=since)

    def near_misses(self, of: Exchange | Stub | Match, limit: int = 3) -> list[NearMiss]:
        """Return near misses, best first: of a request the nearest stubs, of a stub or match the nearest requests."""
        return self.script.stubs.near_misses(of, self.requests(), limit)

    def assert_all_stubs_used(self) -> None:
        """Raise AssertionError for stubs that never served, with the nearest requests."""
        __tracebackhide__ = True
        complain(unused_stubs(self.script.stubs, self.requests()))

    def assert_all_faults_fired(self) -> None:
        """Raise AssertionError for faults that never took effect."""
        __tracebackhide__ = True
        complain(unfired_faults(self.script.faults, self.state, self.requests()))

    def assert_nothing_broke(self, *, since: int = 0) -> None:
        """Raise AssertionError for what a function of a stub raised, and for failures of mockraft itself."""
        __tracebackhide__ = True
        complain(failures(merged(self.journals.values(), since)))

    def assert_all_expected(self) -> None:
        """Raise AssertionError for requests that a strict double did not expect, with the nearest stubs."""
        __tracebackhide__ = True
        complain(unexpected_requests(self.script.stubs, self.requests()))

    def complaints(self, *, since: int = 0, unused: bool = True) -> list[Complaint]:
        """Return all that the `assert_…` would complain of: what broke since the mark, what was set up and not used.

        Unexpected requests are among it if the stubs are strict, stubs and faults unless `unused` is False.
        """
        stubs, requests = self.script.stubs, self.requests()
        found = failures(merged(self.journals.values(), since))
        if unused:
            found += [*unused_stubs(stubs, requests), *unfired_faults(self.script.faults, self.state, requests)]
        return found + (unexpected_requests(stubs, requests) if self.strict else [])

    def release(self, *, client_id: str | None = None, connection: int | None = None) -> int:
        """Release a blackholed client or connection, or all; return how many."""
        return self.script.stubs.release(client_id=client_id, connection=connection)

    def write_journal(self, path: str | Path) -> None:
        """Write the journals into a file: packets for Wireshark into a .pcapng, else JSON lines."""
        path = Path(path)
        entries = merged(self.journals.values())
        if path.suffix != ".pcapng":
            lines = "".join(json.dumps(entry.to_json(), separators=(",", ":")) + "\n" for entry in entries)
            write_private(path, lines.encode())
            return
        with open(path, "wb", opener=opener) as file:
            servers = {node_id: journal.address for node_id, journal in self.journals.items()}
            file.writelines(pcapng_pieces(entries, servers))

    @property
    def leading(self) -> RunningController:
        """The active controller, else the node with the newest log. RuntimeError if none runs."""
        return most_advanced(self.nodes())

    @property
    def now_ms(self) -> int:
        """Time of the controller's clock in milliseconds since the epoch."""
        return self.clock.now_ms()

    @property
    def failure(self) -> str | None:
        """Reason why nothing can be committed now: no majority works, or no leader is known. None if it can."""
        if (failure := quorum_failure(self.nodes())) is not None:
            return failure
        # Nodes may know a leader that is no more.
        has_leader = any(
            each.epoch != STANDBY or (each.raft.role is Role.FOLLOWER and each.raft.leader_id not in self.nodes())
            for each in (node.controller for node in self.nodes().values())
        )
        return None if has_leader else "no controller is active"

    def advance(self, ms: int) -> None:
        """Advance the clock; sessions expire, periodic work runs and parked requests are answered, each at its time.

        TypeError if `ms` is no integer, ValueError if it is negative, and if the clock is the machine's: give the
        controller `clock="virtual"`.
        """
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise ValueError(
                "the controller runs on the machine's clock, which nobody can move:"
                ' start it with clock="virtual" (`mockraft serve --virtual-clock`)'
            )
        clock.advance(ms)

    def as_version(
        self, version: str | None, api_versions: Mapping[str, object] | Mapping[int, object] | None = None
    ) -> None:
        """Offer the APIs and features of another Kafka release ("3.9"; None: the default release).

        `api_versions` are the versions of single APIs by name or key: `(0, 1)`, "0-1" or "off". Connected clients
        notice when they send ApiVersions again, which most do on a new connection. ValueError for an unknown release
        or API.
        """
        own = next((each.config.release for each in self.nodes().values()), DEFAULT)
        offer = Offer(release(version or own), read_ranges(api_versions or {}))
        self.script.offer = offer
        for running in self.nodes().values():
            running.offer(offer)

    def restart_in_place(self, node_id: int | None = None) -> None:
        """Restart the only controller, or a node of a quorum, with its log, port and journal: connections break.

        ValueError for a quorum without a node id, and for a node that does not run.
        """
        if node_id is None:
            self._alone("its nodes are restarted one by one, with `Quorum.restart`").restart()
        else:
            running_node(self.nodes(), node_id).restart()

    def lose_disk(self, node_id: int) -> None:
        """Restart a node of a quorum with an empty data directory, as an observer; the old one is renamed.

        ValueError if it does not run, or is the only voter.
        """
        running_node(self.nodes(), node_id).lose_disk()

    def load(self, path: str | Path) -> None:
        """Start again with a state that `state.save` wrote, or with a snapshot of Kafka's; connections are closed.

        OSError if the file cannot be read, ValueError if it is not a snapshot, for a controller with a data directory
        and for a quorum.
        """
        self._alone("no state can be loaded into it while it runs").reset_log(Path(path))

    def reset(self, *, state: bool = False) -> None:
        """Remove stubs, scenarios, faults and their plan, `as_version`, and journal entries; port and `strict` stay.

        With `state` the controller's log restarts too, and connections are closed: brokers that know its log cannot
        continue with another (a real one exits), so stop them before. ValueError then for a data directory and for a
        quorum.
        """
        if state:
            self._alone("its log cannot begin anew while it runs: reset it without its state").reset_log()
        try:
            self.script.faults.reset()
        finally:
            strict = self.strict
            self.script.stubs.reset()
            self.script.events.clear()
            self.strict = strict
            if self.script.offer is not None:
                self.script.offer = None
                for running in self.nodes().values():
                    running.offer(None)
            for journal in self.journals.values():
                journal.reset()

    @property
    def clock(self) -> Clock:
        """The clock shared by all nodes; it keeps running when all nodes are killed."""
        for running in self.nodes().values():
            self._known_clock = running.clock
        if self._known_clock is None:
            raise NothingRunsError
        return self._known_clock

    def _alone(self, otherwise: str) -> RunningController:
        """Return the only controller; ValueError for a quorum, even if one node is left."""
        nodes = self.nodes()
        if not nodes:
            raise NothingRunsError
        running = next(iter(nodes.values()))
        if not running.config.is_alone:
            raise ValueError(f"this is a quorum (nodes {sorted(self.journals)}): {otherwise}")
        return running
