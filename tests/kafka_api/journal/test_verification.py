"""Waiting for exchanges, and verification of them."""

import pickle
from collections.abc import Callable, Sequence

import pytest
from mockraft import WaitTimeoutError
from mockraft.kafka_api.journal import ClosedConnection, Exchange, Journal, VerificationError, merged, verify, when

from ...rows import each_row
from .conftest import heartbeat

ENTRIES = [heartbeat(broker_id, want_fence=broker_id == 2) for broker_id in (1, 2, 2, 3)]


def of_broker(broker_id: int):  # type: ignore[no-untyped-def]
    def from_the_broker(exchange: Exchange) -> bool:
        return bool(exchange.request.broker_id == broker_id)

    return from_the_broker


class Match:
    """The journal's counterpart of a stub's Match."""

    def __call__(self, exchange: Exchange) -> bool:
        return False

    def to_json(self, *, show_secrets: bool) -> dict[str, object]:
        return {"api": "BrokerHeartbeat", "brokerId": 7, "where": {"currentMetadataOffset": {"gte": 5}}}


def test_gives_the_exchanges_when_they_are_as_many_as_expected() -> None:
    assert verify(ENTRIES, of_broker(2), 2) == ENTRIES[1:3]
    assert verify(ENTRIES, of_broker(1)) == ENTRIES[:1]
    assert verify(ENTRIES, of_broker(9), 0) == []
    assert verify(ENTRIES, at_least=1, at_most=4) == ENTRIES


@each_row(
    ("bounds", "expected"),
    [
        ({"n": 1}, "expected exactly 1, found 2 of 4 requests"),
        ({"n": 0}, "expected none, found 2 of 4 requests"),
        ({"at_least": 3}, "expected at least 3, found 2 of 4 requests"),
        ({"at_most": 1}, "expected at most 1, found 2 of 4 requests"),
        ({"at_least": 3, "at_most": 5}, "expected 3 to 5, found 2 of 4 requests"),
    ],
)
def test_message_contains_expected_and_actual_counts(bounds: dict[str, int], expected: str) -> None:
    with pytest.raises(VerificationError, match=expected) as failed:
        verify(ENTRIES, of_broker(2), **bounds)  # type: ignore[arg-type]
    assert str(failed.value).startswith("requests for which from_the_broker holds: ")


def test_assertion_error_contains_near_misses_and_what_happened() -> None:
    given: list[Exchange] = []

    def near(others: Sequence[Exchange]) -> list[str]:
        given.extend(others)
        return ["#4 and the match:\n  ✗ brokerId: wanted 2, there was 3"]

    with pytest.raises(AssertionError) as failed:
        verify(ENTRIES, of_broker(2), 3, near=near)
    head, found, nearest, happened = str(failed.value).split("\n\n")
    assert head == "requests for which from_the_broker holds: expected exactly 3, found 2 of 4 requests"
    assert found.splitlines()[0] == "found:"
    assert "wantFence" in found
    assert nearest.splitlines()[1:] == ["  #4 and the match:", "    ✗ brokerId: wanted 2, there was 3"]
    assert happened.splitlines()[0] == "journal:"
    assert "  +0.000 s  #0  broker 1, connection 5  BrokerHeartbeat v2  → ok isCaughtUp" in happened
    assert given == [ENTRIES[0], ENTRIES[3]]


def test_message_describes_the_match() -> None:
    with pytest.raises(VerificationError) as failed:
        verify([], Match())
    assert str(failed.value) == (
        'BrokerHeartbeat brokerId=7 currentMetadataOffset={"gte": 5}: expected at least 1, found 0 of 0 requests\n\n'
        "The journal is empty: no request was received, or it is switched off."
    )


def test_shows_the_newest_of_too_many() -> None:
    with pytest.raises(VerificationError, match="any request: expected none") as failed:
        verify([heartbeat() for _ in range(30)], n=0)
    assert "found (the newest 10 of 30):" in str(failed.value)
    assert "nearest" not in str(failed.value)


@each_row("bounds", [{"n": 1, "at_most": 2}, {"at_least": 3, "at_most": 2}, {"n": -1}])
def test_refuses_numbers_that_contradict_each_other(bounds: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"n is an exact number|there is no number"):
        verify(ENTRIES, **bounds)  # type: ignore[arg-type]


Calls = list[tuple[list[Exchange], BaseException | None]]
Then = Callable[[list[Exchange], BaseException | None], None]


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture
def then(calls: Calls) -> Then:
    return lambda found, wrong: calls.append((found, wrong))


def test_waiter_is_notified_at_once_of_existing_entries(journals: list[Journal], calls: Calls, then: Then) -> None:
    journals[1].add_exchange(heartbeat(1))
    journals[0].add_exchange(heartbeat(2))
    when(journals, None, 2, then)
    ((found, wrong),) = calls
    assert ([exchange.id for exchange in found], wrong) == ([1, 2], None)


def test_waiter_is_notified_once_across_nodes(journals: list[Journal], calls: Calls, then: Then) -> None:
    journals[0].add_exchange(heartbeat(1))
    when(journals, lambda exchange: exchange.request.broker_id == 1, 2, then, since=journals[0].mark())
    journals[0].add_exchange(heartbeat(1))
    journals[1].add_exchange(heartbeat(2))
    journals[1].add_closed(ClosedConnection(5, "127.0.0.1:1", 0, 0, "x", refused=False), "x")
    assert calls == []
    journals[1].add_exchange(heartbeat(1))
    journals[1].add_exchange(heartbeat(1))
    ((found, _),) = calls
    assert [exchange.id for exchange in found] == [2, 5]


def test_waiter_is_not_notified_after_the_end(journals: list[Journal], calls: Calls, then: Then) -> None:
    stop = when(journals, None, 1, then)
    stop()
    journals[0].add_exchange(heartbeat())
    assert calls == []


def test_exception_of_a_match_is_passed_on_and_the_journal_continues(
    journals: list[Journal], calls: Calls, then: Then
) -> None:
    when(journals, lambda exchange: exchange.request.no_such_field, 1, then)
    journals[0].add_exchange(heartbeat())
    journals[0].add_exchange(heartbeat())
    ((found, wrong),) = calls
    assert (found, type(wrong)) == ([], AttributeError)
    assert journals[0].counters()["exchanges"] == {"BrokerHeartbeat": 2}


def test_entries_of_all_nodes_are_merged_in_the_order_they_came(journals: list[Journal]) -> None:
    for node in (0, 1, 1, 0):
        journals[node].add_exchange(heartbeat())
    assert [(entry.id, entry.node_id) for entry in merged(journals)] == [(1, 3000), (2, 3001), (3, 3001), (4, 3000)]
    assert [entry.id for entry in merged(journals, since=2)] == [3, 4]


@each_row("kind", [VerificationError, WaitTimeoutError])
def test_error_can_be_pickled(kind: type[VerificationError]) -> None:
    error = kind("found 0", "journal: none")
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), copied.findings, copied.journal) == (kind, "found 0", "journal: none")
    assert str(copied) == str(error)
