"""Every (state, heartbeat) combination of a broker's life, against the table of KIP-631 as 4.3.1 has it."""

from itertools import product

import pytest
from mockraft.server.controller.brokers.broker_state import BrokerState, next_state

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
CONTROLLED_SHUTDOWN, SHUTDOWN_NOW = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW

ANY = None

# current, want fence, want shut down, caught up, leads any, others passed shutdown -> next; the first row that fits
TABLE = [
    (FENCED, ANY, True, ANY, ANY, ANY, SHUTDOWN_NOW),
    (FENCED, False, False, True, ANY, ANY, UNFENCED),
    (FENCED, ANY, ANY, ANY, ANY, ANY, FENCED),
    (UNFENCED, True, True, ANY, ANY, ANY, SHUTDOWN_NOW),
    (UNFENCED, True, False, ANY, ANY, ANY, FENCED),
    (UNFENCED, False, True, ANY, True, ANY, CONTROLLED_SHUTDOWN),
    (UNFENCED, False, True, ANY, False, ANY, SHUTDOWN_NOW),
    (UNFENCED, False, False, ANY, ANY, ANY, UNFENCED),
    (CONTROLLED_SHUTDOWN, ANY, ANY, ANY, True, ANY, CONTROLLED_SHUTDOWN),
    (CONTROLLED_SHUTDOWN, ANY, ANY, ANY, False, True, SHUTDOWN_NOW),
    (CONTROLLED_SHUTDOWN, ANY, ANY, ANY, False, False, CONTROLLED_SHUTDOWN),
    (SHUTDOWN_NOW, ANY, ANY, ANY, ANY, ANY, SHUTDOWN_NOW),
]


def expected(*inputs: object) -> BrokerState:
    for row in TABLE:
        if all(wanted is ANY or wanted == given for wanted, given in zip(row[:-1], inputs, strict=True)):
            return row[-1]
    raise AssertionError(f"the table has no row for {inputs}")


@pytest.mark.parametrize("current", BrokerState)
def test_next_state_is_the_tables_for_every_heartbeat(current: BrokerState) -> None:
    for flags in product((False, True), repeat=5):
        want_fence, want_shut_down, is_caught_up, leads_any, others_passed_shutdown = flags
        found = next_state(
            current,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            is_caught_up=is_caught_up,
            leads_any=leads_any,
            others_passed_shutdown=others_passed_shutdown,
        )
        assert found is expected(current, *flags), (current, flags)


def test_every_row_of_the_table_is_reached() -> None:
    reached = {expected(state, *flags) for state in BrokerState for flags in product((False, True), repeat=5)}
    assert reached == set(BrokerState)


@pytest.mark.parametrize(
    ("state", "is_fenced", "should_shut_down"),
    [(FENCED, True, False), (UNFENCED, False, False), (CONTROLLED_SHUTDOWN, False, False), (SHUTDOWN_NOW, True, True)],
)
def test_states_carry_the_answer_to_the_broker(state: BrokerState, is_fenced: bool, should_shut_down: bool) -> None:
    assert (state.is_fenced, state.should_shut_down) == (is_fenced, should_shut_down)
