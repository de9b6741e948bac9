"""Near misses: among requests or stubs that did not match, the closest ones, condition by condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from mockraft.kafka_api.api import call_of_test
from mockraft.server.stubs.fields import shown
from mockraft.server.stubs.match import CONTROLLER, Condition, ExchangeRequest, Match, StubRequest
from mockraft.wire.redaction.masks import HIDDEN
from mockraft.wire.redaction.messages import masked

if TYPE_CHECKING:
    from mockraft.kafka_api.journal import Exchange
    from mockraft.server.stubs.stub import Stub
    from mockraft.wire.json_form import Json, Tree

EXCHANGES_JUDGED_MAX = 1_000
"""Number of newest exchanges that are compared: each one is decoded in full."""

SHOWN_LENGTH_MAX = 200
"""Maximum length of a value in a text for people."""

_API_WEIGHT = 4
"""Weight of the API: another API is further away than any field of the right one."""


class Judged(NamedTuple):
    """One condition: the path, the expected and the actual value, whether it held, and text in place of the values."""

    path: str
    expected: Json
    actual: Json
    held: bool
    text: str = ""

    def __str__(self) -> str:
        text = self.text or f"wanted {_short(self.expected)}, there was {_short(self.actual)}"
        return f"{'✓' if self.held else '✗'} {self.path}: {text}"

    def to_json(self) -> Tree:
        """Return the condition as JSON."""
        return {"field": self.path, "expected": self.expected, "actual": self.actual, "held": self.held}


@dataclass(frozen=True)
class NearMiss:
    """A stub (None: a match was looked for) and an exchange; `distance` is 0 for a match, 1 for nothing in common."""

    stub: Stub | None
    exchange: Exchange | StubRequest
    conditions: tuple[Judged, ...]
    distance: float

    def describe(self) -> str:
        """Return the near miss as lines for people."""
        of = f"stub {self.stub.id}" + (f" ({self.stub.name})" if self.stub.name else "") if self.stub else "the match"
        return "\n".join([f"{self.exchange!r} and {of}:", *(f"  {condition}" for condition in self.conditions)])

    def to_json(self) -> Tree:
        """Return the near miss as JSON, with the exchange's id."""
        return {
            "stub": self.stub.id if self.stub else None,
            "request": getattr(self.exchange, "id", None),
            "distance": round(self.distance, 3),
            "conditions": [condition.to_json() for condition in self.conditions],
        }


def near_stubs(
    exchange: Exchange | StubRequest, stubs: Iterable[Stub], scenarios: Mapping[str, str], limit: int
) -> list[NearMiss]:
    """Return the stubs that came nearest to serving an exchange."""
    found = [_miss(each, exchange, judge(each.match, exchange), scenarios) for each in stubs]
    return nsmallest(limit, found, key=lambda miss: miss.distance)


def nearest_exchanges(
    subject: Stub | Match, exchanges: Iterable[Exchange], scenarios: Mapping[str, str], limit: int
) -> list[NearMiss]:
    """Return the exchanges that came nearest to a stub or a match; the newest first among equals."""
    match, of = (subject, None) if isinstance(subject, Match) else (subject.match, subject)
    newest_first = list(exchanges)[::-1]
    of_this_api = [exchange for exchange in newest_first if exchange.api_key in match.api_keys] if match.api else []
    # Others are judged only where there are too few of the API that is meant.
    candidates = of_this_api if len(of_this_api) >= limit else newest_first
    found = (_miss(of, each, judge(match, each), scenarios) for each in candidates[:EXCHANGES_JUDGED_MAX])
    return nsmallest(limit, found, key=lambda miss: miss.distance)


def judge(match: Match, request: Exchange | StubRequest) -> tuple[Judged, ...]:
    """Evaluate every condition of a match on a request; the values are those that people may see."""
    if isinstance(request, StubRequest):
        received, seen, show_secrets = request, replace(request, request=masked(request.request)), False
    else:
        received, seen = ExchangeRequest(request), ExchangeRequest(request, is_shown=True)
        show_secrets = request.show_secrets
    is_other_api = bool(match.api) and received.api_key not in match.api_keys
    judged = [
        Judged(
            condition.path,
            shown(condition.expected if show_secrets or not match.is_on_secret(condition.path) else HIDDEN),
            # Another API's request has other fields; that there is none of this name says nothing new.
            None if is_other_api and condition.path in match.where else shown(condition.actual(seen)),
            _holds(condition, received),
        )
        for condition in match.conditions
    ]
    if not match.is_meant(received):
        where = f"it reached broker {received.broker}; without broker={received.broker} this is about controllers only"
        judged.append(Judged("broker", CONTROLLER, received.broker, False, where))
    return tuple(judged)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}… ({len(text):,} characters)"


def _state(stub: Stub, scenarios: Mapping[str, str]) -> list[Judged]:
    """Return why a stub in a list does not serve a request that it matches: its own state, and that of its scenario."""
    judged = []
    if not stub.enabled:
        judged.append(Judged("enabled", True, False, False))
    if stub.scenario is not None and stub.scenario.requires is not None:
        state = scenarios.get(stub.scenario.name)
        judged.append(Judged("scenario", stub.scenario.requires, state, stub.scenario.allows(state or "")))
    if stub.is_spent or (stub.match_count and not stub.called):
        matched = "1 matching request" if stub.match_count == 1 else f"{stub.match_count} matching requests"
        why = "" if stub.is_spent else f"{stub.trigger.to_json()} was not reached: {matched}"
        judged.append(Judged("trigger", stub.trigger.to_json(), matched, False, why))
    return judged


def _miss(
    stub: Stub | None, exchange: Exchange | StubRequest, conditions: tuple[Judged, ...], scenarios: Mapping[str, str]
) -> NearMiss:
    if stub is not None and stub.id:
        conditions += tuple(_state(stub, scenarios))
        served_by = getattr(exchange, "matched", None)
        if served_by not in (None, stub.id) and all(each.held for each in conditions):
            conditions += (Judged("served by", stub.id, served_by, False, f"{served_by}, which precedes this stub"),)
    weights = [(_API_WEIGHT if condition.path == "api" else 1, condition.held) for condition in conditions]
    total = sum(weight for weight, _ in weights) or 1
    return NearMiss(stub, exchange, conditions, sum(weight for weight, held in weights if not held) / total)


def _holds(condition: Condition, received: StubRequest) -> bool:
    """Return True if a condition holds; a test's own function that raises does not, and the journal has the reason."""
    try:
        return call_of_test(condition.test, received)
    except Exception:
        return False
