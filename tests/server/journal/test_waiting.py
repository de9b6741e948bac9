import itertools
from collections.abc import Callable

import pytest
from mockraft.server.journal import ClosedConnection, Exchange, Journal, merged, when

from .conftest import heartbeat

Calls = list[tuple[list[Exchange], Exception | None]]
Then = Callable[[list[Exchange], Exception | None], None]


@pytest.fixture
def journals() -> list[Journal]:
    numbers = itertools.count(1)
    return [Journal(100, 1 << 20, node_id=node_id, numbers=numbers) for node_id in (3000, 3001)]


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
    journals: list[Journal],
    calls: Calls,
    then: Then,
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
