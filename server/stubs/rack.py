"""The stubs that a test has put in the way, found by what a request is so that those of others cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mockraft.server.stubs.errors import StubError, unknown
from mockraft.server.stubs.scenarios import STARTED

if TYPE_CHECKING:
    from mockraft.server.stubs.match import Asked, AskedTest
    from mockraft.server.stubs.near_misses import NearMiss
    from mockraft.server.stubs.stub import Stub

KEYS_KEPT = 4096
"""For how many different askers a shelf remembers which stubs are for them."""


class _Shelf:
    """The stubs of one API, the first to ask first; `candidates` are those whose scopes an asker is in.

    Scopes depend on who asks alone, so they are looked at once for each asker, and stubs for others cost nothing.
    """

    __slots__ = ("_found", "_key", "_of_any", "is_empty")

    def __init__(self, stubs: list[Stub]) -> None:
        attributes = sorted({attribute for each in stubs for attribute, _ in each.match.scope_tests})
        self.is_empty = not stubs
        self._key: Callable[[Asked], Any] | None = attrgetter(*attributes) if attributes else None
        self._of_any = [(each, each.match.other_tests) for each in stubs]
        self._found: dict[Any, list[tuple[Stub, tuple[AskedTest, ...]]]] = {}

    def candidates(self, asked: Asked) -> list[tuple[Stub, tuple[AskedTest, ...]]]:
        """The stubs that may match, with the tests that are still to be made."""
        if self._key is None:
            return self._of_any
        key = self._key(asked)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= KEYS_KEPT:
                self._found.clear()
            found = self._found[key] = [
                (each, tests) for each, tests in self._of_any if all(test(asked) for _, test in each.match.scope_tests)
            ]
        return found


class Rack:
    """Live stubs, the states of their scenarios, and who is blackholed.

    `is_armed` says that requests must be shown to it at all. `strict`: a request that no stub matches is marked
    `unmatched` in the journal; the controller answers it all the same.
    """

    def __init__(self) -> None:
        self.is_armed = False
        self.scenarios: dict[str, str] = {}
        self._strict = False
        self._stubs: dict[str, Stub] = {}
        self._order: dict[str, int] = {}
        self._added = 0
        self._of_faults: set[str] = set()
        self._shelves: dict[int, _Shelf] = {}
        self._held: dict[tuple[int, str, int | str], str] = {}
        self.releases = 0
        """How often somebody who was blackholed was released."""
        self.on_release: list[Callable[[], object]] = []
        """Who is called then: listeners, whose clocks may stand still."""

    @property
    def stubs(self) -> list[Stub]:
        """The live stubs, in the order in which they are asked: by priority, among equals the newest first."""
        return sorted(self._stubs.values(), key=lambda each: (-each.priority, -self._order[each.id]))

    @property
    def strict(self) -> bool:
        """Whether requests that no stub matches are marked."""
        return self._strict

    @strict.setter
    def strict(self, strict: bool) -> None:
        self._strict = strict
        self._changed()

    def add(self, stub: Stub, *, of_fault: bool = False) -> Stub:
        """Put a stub in the way; gives the live one. StubError when its id is taken.

        One that is `of_fault` is never `unused`: its fault says whether it met anything.
        """
        if stub.id in self._stubs:
            raise StubError(f"there is a stub {stub.id!r} already", "id")
        self._added += 1
        name, number = stub.id, self._added
        while not name or name in self._stubs:
            name, number = f"stub-{number}", number + 1
        live = replace(stub, id=name)
        self._order[name] = self._added
        if of_fault:
            self._of_faults.add(name)
        return self._place(live)

    def replace(self, stub_id: str, stub: Stub) -> Stub:
        """Put another stub in the place of one, under its id and with fresh counts. KeyError for an unknown id."""
        self.get(stub_id)
        self._release_held_by(stub_id)
        return self._place(replace(stub, id=stub_id))

    def get(self, stub_id: str) -> Stub:
        """A live stub. KeyError for an unknown id."""
        try:
            return self._stubs[stub_id]
        except KeyError:
            raise KeyError(unknown("stub", stub_id, self._stubs) if self._stubs else "there are no stubs") from None

    def enable(self, stub_id: str, is_enabled: bool = True) -> Stub:
        """Switch a stub on or off; its counts stay, and whom it blackholed is released. KeyError for an unknown id."""
        live = self.get(stub_id)
        live.enabled = is_enabled
        self._release_held_by(stub_id)
        return live

    def remove(self, stub: str | Stub) -> Stub:
        """Take a stub away, by its id or as it is; whom it blackholed is released. KeyError for an unknown id."""
        gone = self.get(stub if isinstance(stub, str) else stub.id)
        del self._stubs[gone.id], self._order[gone.id]
        self._of_faults.discard(gone.id)
        self._release_held_by(gone.id)
        self._changed()
        return gone

    def reset(self) -> None:
        """Take everything away, scenarios and strict mode included, and release everybody."""
        self._stubs.clear()
        self._order.clear()
        self._of_faults.clear()
        self.scenarios.clear()
        self.release()
        self.strict = False

    def set_scenario(self, name: str, state: str = STARTED) -> None:
        """Put a scenario into a state. KeyError for one that no stub is part of."""
        if name not in self.scenarios:
            raise KeyError(unknown("scenario", name, self.scenarios) if self.scenarios else "there are no scenarios")
        self.scenarios[name] = state

    def reset_scenarios(self) -> None:
        """Put every scenario back to where it began."""
        for name in self.scenarios:
            self.scenarios[name] = STARTED

    def unused(self) -> list[Stub]:
        """The stubs that are switched on and have never served."""
        return [each for each in self.stubs if each.enabled and not each.called and each.id not in self._of_faults]

    def near_misses(self, subject: Any, exchanges: Iterable[Any] = (), limit: int = 3) -> list[NearMiss]:
        """What comes nearest: to an exchange, the stubs here; to a stub or a match, of these exchanges. Best first."""
        from mockraft.server.stubs.near_misses import near_stubs, nearest_exchanges

        if hasattr(subject, "api_key"):
            return near_stubs(subject, self.stubs, self.scenarios, limit)
        return nearest_exchanges(subject, exchanges, limit)

    def match(self, asked: Asked) -> Stub | None:
        """The stub that serves a request, which is counted, and its scenario goes on; None where there is none."""
        for candidate, tests in self._shelf(asked.api_key).candidates(asked):
            for test in tests:
                if not test(asked):
                    break
            else:
                if self._serves(candidate):
                    return candidate
        return None

    def is_idle_for(self, api_key: int) -> bool:
        """Whether no request of an API can be of interest, whoever asks."""
        return not self._strict and not self._held and self._shelf(api_key).is_empty

    def hold(self, stub: Stub, asked: Asked, by: str) -> None:
        """Blackhole who asked: the client ("clientId") or only the connection ("connection")."""
        self._held[self._key(asked, by)] = stub.id

    def holder(self, asked: Asked) -> Stub | None:
        """The stub that blackholes who asks."""
        if not self._held:
            return None
        for by in ("connection", "clientId"):
            stub_id = self._held.get(self._key(asked, by))
            if stub_id is not None:
                return self._stubs[stub_id]
        return None

    @property
    def blackholed(self) -> list[dict[str, Any]]:
        """Who is blackholed: the node, the client id or connection, and by which stub."""
        return [{"node": node, by: who, "stub": stub_id} for (node, by, who), stub_id in self._held.items()]

    def release(self, *, client_id: str | None = None, connection: int | None = None) -> int:
        """Answer a blackholed client or connection again, or everybody; gives how many are released."""
        wanted = {("clientId", client_id), ("connection", connection)}
        everybody = client_id is None and connection is None
        released = [key for key in self._held if everybody or key[1:] in wanted]
        self._release(released)
        return len(released)

    def forget_connection(self, node: int, connection: int) -> None:
        """A connection ended: another one may get its number when a node starts again."""
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

    def _shelf(self, api_key: int) -> _Shelf:
        shelf = self._shelves.get(api_key)
        if shelf is None:
            theirs = [each for each in self.stubs if not each.match.api_keys or api_key in each.match.api_keys]
            shelf = self._shelves[api_key] = _Shelf(theirs)
        return shelf

    def _place(self, live: Stub) -> Stub:
        if live.scenario is not None:
            self.scenarios.setdefault(live.scenario.name, STARTED)
        self._stubs[live.id] = live
        self._changed()
        return live

    def _changed(self) -> None:
        self._shelves.clear()
        self.is_armed = bool(self._stubs) or self._strict

    def _release_held_by(self, stub_id: str) -> None:
        self._release([key for key, holder in self._held.items() if holder == stub_id])

    def _release(self, keys: list[tuple[int, str, int | str]]) -> None:
        for key in keys:
            del self._held[key]
        if keys:
            self.releases += 1
            for tell in tuple(self.on_release):
                tell()

    @staticmethod
    def _key(asked: Asked, by: str) -> tuple[int, str, int | str]:
        return (asked.node, by, asked.connection if by == "connection" else asked.client_id or "")
