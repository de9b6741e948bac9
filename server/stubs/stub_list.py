"""The stubs of a controller, indexed so that a request costs nothing for the stubs of others.

Stubs are grouped by API key. Within a group, the stubs whose scopes fit a sender are found once and remembered, since
scopes depend on the sender alone; only the conditions on fields are tested for every request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mockraft.server.stubs.errors import StubError, unknown
from mockraft.wire import api_keys

if TYPE_CHECKING:
    from mockraft.kafka_api.journal import Exchange
    from mockraft.server.stubs.match import Match, RequestTest, StubRequest
    from mockraft.server.stubs.near_misses import NearMiss
    from mockraft.server.stubs.stub import Stub
    from mockraft.wire.json_form import Tree

STARTED: Final = "Started"
"""State in which every scenario begins (WireMock's name)."""

ROUTINE_API_KEYS = frozenset(
    (
        api_keys.API_VERSIONS,
        api_keys.ASSIGN_REPLICAS_TO_DIRS,
        api_keys.BEGIN_QUORUM_EPOCH,
        api_keys.BROKER_HEARTBEAT,
        api_keys.BROKER_REGISTRATION,
        api_keys.CONTROLLER_REGISTRATION,
        api_keys.END_QUORUM_EPOCH,
        api_keys.FETCH,
        api_keys.FETCH_SNAPSHOT,
        api_keys.SASL_AUTHENTICATE,
        api_keys.SASL_HANDSHAKE,
        api_keys.VOTE,
    )
)
"""APIs that every broker and every node of a quorum uses, whatever a test is about: strict mode expects them."""

KEYS_KEPT = 4096
"""Number of different senders for which a group remembers its candidates."""


class _ApiStubs:
    """The stubs of one API, in order of precedence; `candidates` are those whose scopes fit a sender.

    Scopes depend on the sender alone, so they are tested once for each sender.
    """

    __slots__ = ("_found", "_key", "_of_any", "is_empty")

    def __init__(self, stubs: list[Stub]) -> None:
        attributes = sorted({attribute for each in stubs for attribute, _ in each.match.scope_tests})
        self.is_empty = not stubs
        self._key: Callable[[StubRequest], Hashable] | None = attrgetter(*attributes) if attributes else None
        self._of_any = [(each, each.match.other_tests) for each in stubs]
        self._found: dict[Hashable, list[tuple[Stub, tuple[RequestTest, ...]]]] = {}

    def candidates(self, received: StubRequest) -> list[tuple[Stub, tuple[RequestTest, ...]]]:
        """Return the stubs that may match, with the tests that remain."""
        if self._key is None:
            return self._of_any
        key = self._key(received)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= KEYS_KEPT:
                self._found.clear()
            found = self._found[key] = [
                (each, tests)
                for each, tests in self._of_any
                if all(test(received) for _, test in each.match.scope_tests)
            ]
        return found


class StubList:
    """Live stubs, the states of their scenarios, and the blackholed clients.

    `is_armed` is True if requests have to be matched at all. `strict`: a request that no stub matches is marked
    `unmatched` in the journal, except the APIs that every broker and controller uses (`ROUTINE_API_KEYS`). The
    controller answers it as usual.
    """

    def __init__(self) -> None:
        self.is_armed = False
        self.scenarios: dict[str, str] = {}
        self._strict = False
        self._stubs: dict[str, Stub] = {}
        self._order: dict[str, int] = {}
        self._added = 0
        self._of_faults: dict[str, str] = {}
        self._by_api: dict[int, _ApiStubs] = {}
        self._held: dict[tuple[int, str, int | str], str] = {}
        self.heartbeats: dict[int, tuple[int, str]] = {}
        """The newest heartbeat of each broker that a stub changed, refused or lost: its time, and what was done."""
        self.releases = 0
        """Number of times that a blackholed client was released."""
        self.on_release: list[Callable[[], object]] = []
        """Callbacks on a release; for servers with a virtual clock."""
        self.check: Callable[[Match], None] = lambda match: None
        """Raises StubError for a match that no request can meet."""
        self.call: Callable[[Callable[[], Stub]], Stub] = lambda change: change()
        """Carries out changes of live stubs; where a test is in another thread, in that of the event loop."""

    @property
    def stubs(self) -> list[Stub]:
        """The live stubs in order of precedence: by priority, among equals the newest first."""
        return sorted(self._stubs.values(), key=lambda each: (-each.priority, -self._order[each.id]))

    @property
    def strict(self) -> bool:
        """True if requests that no stub matches are marked."""
        return self._strict

    @strict.setter
    def strict(self, strict: bool) -> None:
        self._strict = strict
        self._changed()

    @property
    def own(self) -> list[Stub]:
        """Those that are no part of a fault, in order of precedence."""
        return [each for each in self.stubs if each.id not in self._of_faults]

    def title(self, stub: Stub) -> str:
        """Return what a stub is called in events: the fault that it is part of, or itself."""
        return self._of_faults.get(stub.id) or f"stub {stub.name or stub.id}"

    def note_heartbeat(self, broker_id: int, now_ms: int, done: str) -> None:
        """Remember what a stub did to a broker's heartbeat."""
        if len(self.heartbeats) >= KEYS_KEPT:
            self.heartbeats.clear()
        self.heartbeats[broker_id] = (now_ms, done)

    def belong_to(self, fault: str, stubs: Iterable[Stub]) -> None:
        """Make live stubs those of a fault, by its title: they are never `unused`, as their fault reports that."""
        self._of_faults |= {each.id: fault for each in stubs}

    def add(self, stub: Stub) -> Stub:
        """Add a stub and return the live one. Raise StubError if its id is taken, or no request can match it."""
        if stub.id in self._stubs:
            raise StubError(f"there is a stub {stub.id!r} already", "id")
        self.check(stub.match)
        self._added += 1
        name, number = stub.id, self._added
        while not name or name in self._stubs:
            name, number = f"stub-{number}", number + 1
        self._order[name] = self._added
        return self._place(replace(stub, id=name))

    def replace(self, stub_id: str, stub: Stub) -> Stub:
        """Replace a stub, with the same id and new counts. Raise KeyError for an unknown id."""
        return self._changed_to(self.get(stub_id), replace(stub, id=stub_id))

    def change(self, live: Stub, changed: Stub) -> Stub:
        """Let a live stub become another one, in the event loop; return it. StubError for an id that is taken."""
        return self.call(lambda: self._changed_to(live, changed))

    def _changed_to(self, live: Stub, changed: Stub) -> Stub:
        if changed.id != live.id:
            if changed.id in self._stubs:
                raise StubError(f"there is a stub {changed.id!r} already", "id")
            self._order[changed.id] = self._order.pop(live.id)
            del self._stubs[live.id]
        self._release_held_by(live.id)
        for each in fields(live):
            setattr(live, each.name, getattr(changed, each.name))
        return self._place(live)

    def get(self, stub_id: str) -> Stub:
        """Return a live stub. Raise KeyError for an unknown id."""
        try:
            return self._stubs[stub_id]
        except KeyError:
            raise KeyError(unknown("stub", stub_id, self._stubs) if self._stubs else "there are no stubs") from None

    def enable(self, stub_id: str, is_enabled: bool = True) -> Stub:
        """Switch a stub on or off, and release the clients it blackholed. Raise KeyError for an unknown id."""
        live = self.get(stub_id)
        live.enabled = is_enabled
        self._release_held_by(stub_id)
        return live

    def remove(self, stub: str | Stub) -> Stub:
        """Remove a stub and release the clients it blackholed. Raise KeyError for an unknown id."""
        gone = self.get(stub if isinstance(stub, str) else stub.id)
        del self._stubs[gone.id], self._order[gone.id]
        gone.change_live = None
        self._of_faults.pop(gone.id, None)
        self._release_held_by(gone.id)
        self._changed()
        return gone

    def reset(self) -> None:
        """Remove everything, scenarios and strict mode included, and release all clients."""
        for each in self._stubs.values():
            each.change_live = None
        self._stubs.clear()
        self._order.clear()
        self._of_faults.clear()
        self.scenarios.clear()
        self.heartbeats.clear()
        self.release()
        self.strict = False

    def set_scenario(self, name: str, state: str = STARTED) -> None:
        """Put a scenario into a state. Raise KeyError for one that no stub is part of."""
        if name not in self.scenarios:
            raise KeyError(unknown("scenario", name, self.scenarios) if self.scenarios else "there are no scenarios")
        self.scenarios[name] = state

    def reset_scenarios(self) -> None:
        """Put every scenario back into its first state."""
        for name in self.scenarios:
            self.scenarios[name] = STARTED

    def unused(self) -> list[Stub]:
        """Return the stubs that are switched on and have never served."""
        return [each for each in self.own if each.enabled and not each.called]

    def near_misses(
        self, subject: Exchange | StubRequest | Stub | Match, exchanges: Iterable[Exchange] = (), limit: int = 3
    ) -> list[NearMiss]:
        """Return the nearest stubs for an exchange, or the nearest of `exchanges` for a stub or a match. Best first.

        As many as of WireMock's by default (NearMissCalculator.NEAR_MISS_COUNT).
        """
        # Imported here: a controller without stubs starts sooner.
        from mockraft.server.stubs.match import Match
        from mockraft.server.stubs.near_misses import near_stubs, nearest_exchanges
        from mockraft.server.stubs.stub import Stub

        if isinstance(subject, Stub | Match):
            return nearest_exchanges(subject, exchanges, self.scenarios, limit)
        return near_stubs(subject, self.stubs, self.scenarios, limit)

    def match(self, received: StubRequest) -> Stub | None:
        """Return the stub that serves a request, count the call and advance its scenario; None if there is none."""
        for candidate, tests in self._of_api(received.api_key).candidates(received):
            try:
                for test in tests:
                    if not test(received):
                        break
                else:
                    if self._serves(candidate):
                        return candidate
            except BaseException as error:
                error.add_note(f"(raised by the match of stub {candidate.id})")
                raise
        return None

    def expects_stub_of(self, api_key: int) -> bool:
        """Return True if a request of this API is unexpected without a stub."""
        return self._strict and api_key not in ROUTINE_API_KEYS

    def is_idle_for(self, api_key: int) -> bool:
        """Return True if requests of this API need not be matched, whoever sends them."""
        return not self.expects_stub_of(api_key) and not self._held and self._of_api(api_key).is_empty

    def hold(self, stub: Stub, received: StubRequest, by: str) -> None:
        """Blackhole the sender: the client ("clientId") or only the connection ("connection")."""
        self._held[self._key(received, by)] = stub.id

    def holder(self, received: StubRequest) -> Stub | None:
        """Return the stub that blackholes the sender."""
        if not self._held:
            return None
        for by in ("connection", "clientId"):
            stub_id = self._held.get(self._key(received, by))
            if stub_id is not None:
                return self._stubs[stub_id]
        return None

    @property
    def blackholed(self) -> list[Tree]:
        """Blackholed clients and connections: the node, the client id or connection, and the stub."""
        return [{"node": node, by: who, "stub": stub_id} for (node, by, who), stub_id in self._held.items()]

    def release(self, *, client_id: str | None = None, connection: int | None = None) -> int:
        """Release a blackholed client or connection, or all; return how many were released."""
        wanted = {("clientId", client_id), ("connection", connection)}
        everybody = client_id is None and connection is None
        released = [key for key in self._held if everybody or key[1:] in wanted]
        self._release(released)
        return len(released)

    def forget_connection(self, node: int, connection: int) -> None:
        """Forget a closed connection: its number may be used again after a node restarts."""
        self._held.pop((node, "connection", connection), None)

    def _serves(self, stub: Stub) -> bool:
        scenario = stub.scenario
        if not stub.enabled or (scenario is not None and not scenario.allows(self.scenarios[scenario.name])):
            return False
        stub.match_count += 1
        if not stub.trigger.fires(stub.match_count):
            return False
        stub.call_count += 1
        if scenario is not None and scenario.then is not None:
            self.scenarios[scenario.name] = scenario.then
        return True

    def _of_api(self, api_key: int) -> _ApiStubs:
        group = self._by_api.get(api_key)
        if group is None:
            theirs = [each for each in self.stubs if not each.match.api_keys or api_key in each.match.api_keys]
            group = self._by_api[api_key] = _ApiStubs(theirs)
        return group

    def _place(self, live: Stub) -> Stub:
        if live.scenario is not None:
            self.scenarios.setdefault(live.scenario.name, STARTED)
        live.change_live = self.change
        self._stubs[live.id] = live
        self._changed()
        return live

    def _changed(self) -> None:
        self._by_api.clear()
        self.is_armed = bool(self._stubs) or self._strict

    def _release_held_by(self, stub_id: str) -> None:
        self._release([key for key, holder in self._held.items() if holder == stub_id])

    def _release(self, keys: list[tuple[int, str, int | str]]) -> None:
        for key in keys:
            del self._held[key]
        if keys:
            self.releases += 1
            for callback in tuple(self.on_release):
                callback()

    @staticmethod
    def _key(received: StubRequest, by: str) -> tuple[int, str, int | str]:
        return (received.node, by, received.connection if by == "connection" else received.client_id or "")
