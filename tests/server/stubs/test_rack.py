"""Which of several stubs serves, and what is said of those that did not."""

from typing import Any

import pytest
from mockraft import Stub, stub
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.rack import Rack
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

from .test_match import asked


@pytest.fixture
def rack() -> Rack:
    return Rack()


def served(rack: Rack, count: int = 1, **fields: Any) -> list[str | None]:
    """Ids of the stubs that serve so many heartbeats of broker 1."""
    request = BrokerHeartbeatRequest(**{"broker_id": 1, **fields})
    found = [rack.match(asked(request, broker_id=request.broker_id)) for _ in range(count)]
    return [None if each is None else each.id for each in found]


def test_the_highest_priority_serves_and_among_equals_the_newest(rack: Rack) -> None:
    rack.add(stub("BrokerHeartbeat").named("", id="old"))
    rack.add(stub("BrokerHeartbeat").named("", id="new"))
    assert served(rack) == ["new"]
    rack.add(stub("BrokerHeartbeat", broker_id=1).named("", id="low").with_priority(-1))
    assert served(rack) == ["new"]
    rack.add(stub().named("", id="high").with_priority(1).once())
    assert served(rack, 2) == ["high", "new"]
    assert [each.id for each in rack.stubs] == ["high", "new", "old", "low"]


def test_a_stub_that_is_not_for_it_lets_the_next_one_serve(rack: Rack) -> None:
    rack.add(stub("BrokerHeartbeat").named("", id="any"))
    rack.add(stub("BrokerHeartbeat", broker_id=[2, 3]).named("", id="others"))
    rack.add(stub("BrokerHeartbeat", broker_id=1).named("", id="twice").times(2))
    rack.add(stub("Fetch").named("", id="fetch"))
    assert served(rack, 3) == ["twice", "twice", "any"]
    assert served(rack, broker_id=3) == ["others"]
    assert served(rack, broker_id=9) == ["any"]


@pytest.mark.parametrize(
    ("trigger", "calls"),
    [
        (lambda each: each, [1, 2, 3, 4]),
        (lambda each: each.every_time(), [1, 2, 3, 4]),
        (lambda each: each.once(), [1]),
        (lambda each: each.times(3), [1, 2, 3]),
        (lambda each: each.on_call(3), [3]),
        (lambda each: each.with_probability(1.0), [1, 2, 3, 4]),
        (lambda each: each.with_probability(0), []),
    ],
)
def test_triggers_fire_on_their_calls(rack: Rack, trigger: Any, calls: list[int]) -> None:
    live = rack.add(trigger(stub("BrokerHeartbeat")))
    found = served(rack, 4)
    assert [number for number, each in enumerate(found, 1) if each] == calls
    assert (live.match_count, live.call_count) == (4, len(calls))


def test_chance_repeats_with_its_seed(rack: Rack) -> None:
    def fired(seed: int) -> list[bool]:
        rack.reset()
        rack.add(stub("BrokerHeartbeat").with_probability(0.5, seed))
        return [each is not None for each in served(rack, 200)]

    assert fired(1) == fired(1) != fired(2)
    assert 60 < sum(fired(1)) < 140


def test_scenarios_go_from_state_to_state(rack: Rack) -> None:
    rack.add(stub("BrokerHeartbeat").named("", id="down").in_scenario("failover", requires="Started", then="Moved"))
    rack.add(stub("BrokerHeartbeat").named("", id="moved").in_scenario("failover", requires="Moved"))
    assert rack.scenarios == {"failover": "Started"}
    assert served(rack, 3) == ["down", "moved", "moved"]
    rack.set_scenario("failover", "Nowhere")
    assert served(rack) == [None]
    rack.reset_scenarios()
    assert served(rack) == ["down"]
    with pytest.raises(KeyError, match="did you mean failover"):
        rack.set_scenario("failovr", "Moved")


def test_stubs_are_switched_off_replaced_and_taken_away(rack: Rack) -> None:
    live = rack.add(stub("BrokerHeartbeat").named("a", id="a"))
    assert rack.enable("a", False) is live
    assert served(rack) == [None]
    assert rack.unused() == []
    rack.enable("a")
    assert served(rack) == ["a"]
    other = rack.replace("a", stub("BrokerHeartbeat").named("b").in_scenario("new", requires="Started"))
    assert (other.id, other.call_count, served(rack)) == ("a", 0, ["a"])
    with pytest.raises(StubError, match="there is a stub 'a' already"):
        rack.add(stub().named("", id="a"))
    rack.remove("a")
    assert (rack.is_armed, served(rack)) == (False, [None])
    with pytest.raises(KeyError, match="there are no stubs"):
        rack.remove("a")


def test_what_never_served_is_told(rack: Rack) -> None:
    used, unused = rack.add(stub("BrokerHeartbeat")), rack.add(stub("Fetch"))
    served(rack)
    assert rack.unused() == [unused]
    assert used.called


def test_a_strict_rack_is_armed_without_stubs(rack: Rack) -> None:
    rack.strict = True
    assert rack.is_armed
    rack.reset()
    assert (rack.is_armed, rack.strict) == (False, False)


def test_ids_are_made_for_those_that_have_none(rack: Rack) -> None:
    rack.add(stub().named("", id="stub-2"))
    assert [rack.add(Stub()).id for _ in range(2)] == ["stub-3", "stub-4"]


def test_near_misses_say_field_by_field_what_was_there_instead(rack: Rack) -> None:
    rack.add(stub("Fetch").named("", id="far"))
    rack.add(stub("BrokerHeartbeat", broker_id=2, want_fence=True).named("", id="nearer"))
    rack.add(stub("BrokerHeartbeat", broker_id=2, want_fence=False).named("fenced 2", id="near"))
    rack.add(stub("BrokerHeartbeat", want_fence=False, current_metadata_offset__gte=9, version=2).named("", id="less"))
    misses = rack.near_misses(asked())
    assert [miss.stub.id for miss in misses if miss.stub] == ["nearer", "near", "less"]
    assert misses[1].to_json()["conditions"] == [
        {"field": "api", "expected": "BrokerHeartbeat", "actual": "BrokerHeartbeat", "held": True},
        {"field": "brokerId", "expected": 2, "actual": 1, "held": False},
        {"field": "wantFence", "expected": False, "actual": True, "held": False},
    ]
    assert "stub near (fenced 2):\n  ✓ api" in misses[1].describe()
    assert "✗ brokerId: wanted 2, there was 1" in misses[1].describe()


def test_a_near_miss_says_when_scenario_or_trigger_are_why(rack: Rack) -> None:
    spent = rack.add(stub("BrokerHeartbeat").once())
    waiting = rack.add(stub("BrokerHeartbeat").in_scenario("s", requires="Later"))
    served(rack)
    by_stub = {miss.stub.id: miss.conditions[-1] for miss in rack.near_misses(asked()) if miss.stub}
    assert by_stub[spent.id].path == "trigger"
    assert (by_stub[waiting.id].path, by_stub[waiting.id].actual) == ("scenario", "Started")


def test_hundreds_of_stubs_for_others_are_not_tried(rack: Rack) -> None:
    def never(value: Any) -> bool:
        raise AssertionError("it was tried")

    for number in range(300):
        rack.add(stub("Fetch", client_id=never))
        rack.add(stub("BrokerHeartbeat", broker_id=1_000 + number, where={"wantFence": never}))
    assert served(rack) == [None]


def test_a_near_miss_of_a_long_text_is_told_in_a_line(rack: Rack) -> None:
    rack.add(stub(client_id="x"))
    (condition,) = rack.near_misses(asked(client_id="y" * 10_000))[0].conditions
    assert len(str(condition)) < 300
    assert str(condition).endswith("… (10,002 characters)")
