"""Stubs as JSON and back, and errors for invalid JSON."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft import Stub, stub
from mockraft.server.stubs.action import AnswerPlan
from mockraft.server.stubs.actions import ACTIONS, action_from_json
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.triggers import TRIGGERS
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

from ...rows import each_row

NUMBERS = st.integers(0, 1 << 20)
NAMES = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=8)
SCOPE = NUMBERS | st.lists(NUMBERS, min_size=1, max_size=3) | st.fixed_dictionaries({"gte": NUMBERS, "lt": NUMBERS})
TEXT = NAMES | st.fixed_dictionaries({"startsWith": NAMES}) | st.fixed_dictionaries({"not": NAMES})
MATCHES = st.fixed_dictionaries(
    {"api": st.just("BrokerHeartbeat")},
    optional={
        "version": SCOPE | st.fixed_dictionaries({"min": NUMBERS, "max": NUMBERS}),
        "brokerId": SCOPE,
        "clientId": TEXT,
        "node": SCOPE,
        "where": st.dictionaries(st.sampled_from(["brokerEpoch", "currentMetadataOffset"]), SCOPE, min_size=1),
    },
)
TRIGGER = st.one_of(
    st.just({"once": True}),
    st.just({"everyTime": True}),
    st.fixed_dictionaries({"times": st.integers(1, 9)}),
    st.fixed_dictionaries({"onCall": st.integers(1, 9)}),
    st.fixed_dictionaries({"withProbability": st.floats(0, 1), "seed": NUMBERS}),
)
ACTION_LISTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"delayOn": st.fixed_dictionaries({"ms": NUMBERS}, optional={"jitterMs": NUMBERS})}),
        st.just({"change": {"response": {"isFenced": True, "errorCode": "NOT_CONTROLLER"}}}),
        st.fixed_dictionaries({"truncate": st.fixed_dictionaries({"bytes": NUMBERS})}),
        st.fixed_dictionaries({"wrongLength": st.integers(-100, 100)}),
        st.just("drop"),
    ),
    max_size=4,
)
STUBS = st.fixed_dictionaries(
    {"match": MATCHES, "trigger": TRIGGER, "actions": ACTION_LISTS},
    optional={
        "id": st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True).filter(lambda name: name != "unused"),
        "name": NAMES,
        "priority": st.integers(-5, 5),
        "enabled": st.booleans(),
        "scenario": st.fixed_dictionaries({"name": NAMES}, optional={"requires": NAMES, "then": NAMES}),
    },
)


@settings(max_examples=25)
@given(STUBS)
def test_a_stub_survives_json(tree: dict[str, Any]) -> None:
    read = Stub.from_json(tree)
    written = json.loads(json.dumps(read.to_json()))
    again = Stub.from_json(written)
    assert again == read
    assert again.to_json() == written


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "match",
                        "trigger",
                        "actions",
                        "scenario",
                        "api",
                        "where",
                        "times",
                        "name",
                        "drop",
                        "delayOn",
                        "change",
                    ]
                )
                | st.text(max_size=4),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    )
)
def test_any_json_is_a_stub_or_is_refused_by_name(tree: Any) -> None:
    with contextlib.suppress(StubError):
        assert Stub.from_json(tree).to_json()


@each_row("name", list(ACTIONS))
def test_every_action_has_an_example_that_works(name: str) -> None:
    kind = ACTIONS[name]
    action = action_from_json({name: kind.example})
    assert type(action) is kind
    assert action_from_json(action.to_json()) == action
    assert AnswerPlan([action]).actions == (action,)
    assert kind.summary.endswith(".")


def test_every_trigger_fires_as_configured() -> None:
    assert all(kind.summary for kind in TRIGGERS.values())


def test_python_only_parts_are_shown_but_not_loaded() -> None:
    tree: Any = stub("BrokerHeartbeat").answers(lambda request: None).to_json()
    assert "<python" in tree["actions"][0]["answers"]
    with pytest.raises(StubError, match="expected a list of answers"):
        Stub.from_json(tree)
    message: Any = stub("BrokerHeartbeat").answer(BrokerHeartbeatResponse(is_fenced=True)).to_json()
    assert message["actions"][0]["answer"]["isFenced"] is True


@each_row(
    ("tree", "field", "said"),
    [
        ([], "", "expected an object"),
        ({"macth": {}}, "macth", "did you mean match?"),
        ({"priority": "1"}, "priority", "expected int"),
        ({"priority": 1 << 63}, "priority", "64 bits"),
        ({"id": "a/b"}, "id", "letters, digits"),
        ({"id": "unused"}, "id", "none of unused"),
        ({"id": ".."}, "id", "none of unused"),
        ({"match": {"api": "Fetc"}}, "match.api", "did you mean Fetch?"),
        ({"trigger": {"times": 0}}, "trigger.times", "expected a number from 1 on"),
        ({"trigger": {"twice": True}}, "trigger.twice", "there is no trigger 'twice'"),
        ({"trigger": {"withProbability": 2}}, "trigger.withProbability", "from 0 to 1"),
        ({"scenario": {"nam": "x"}}, "scenario.nam", "did you mean name?"),
        ({"scenario": {}}, "scenario.name", "scenario needs it"),
        ({"actions": ["dorp"]}, "actions[0]", "did you mean drop?"),
        ({"actions": [{"drop": True, "reset": True}]}, "actions[0]", "are separate actions"),
        ({"actions": [{"injectError": "NOT_CONTROLER"}]}, "actions[0].injectError", "did you mean NOT_CONTROLLER"),
        ({"actions": [{"delayOn": {"ms": "5"}}]}, "actions[0].delayOn.ms", "expected an integer, got '5'"),
        ({"actions": [{"delayOn": {"milliseconds": 5}}]}, "actions[0].delayOn.milliseconds", "no parameter of delayOn"),
        ({"actions": ["drop", "reset", "drop"]}, "actions[2]", "no action can follow reset"),
        ({"actions": ["passThrough", {"injectError": 5}]}, "actions[1]", "an earlier action answers already"),
        ({"actions": [{"raw": {"hex": "xx"}}]}, "actions[0].raw.hex", "expected hexadecimal digits"),
        ({"actions": [{"answer": {"isFenced": True}}]}, "actions[0].answer", "the match must name the API"),
        (
            {"match": {"api": 63}, "actions": [{"answer": {"isFencd": True}}]},
            "actions[0].answer.isFencd",
            "did you mean isFenced?",
        ),
        (
            {"match": {"api": 63}, "actions": [{"change": {"response": {"isFenced": 1}}}]},
            "actions[0].change.response.isFenced",
            "expected bool, got 1",
        ),
        (
            {"match": {"api": 63}, "actions": [{"answers": ["drop", {"answer": {"isFencd": True}}]}]},
            "actions[0].answers[1].isFencd",
            "did you mean isFenced?",
        ),
        ({"injectError": "FETCH", "once": True}, "injectError", "expected [apiKey, error]"),
        ({"injectError": ["FETC", "NOT_CONTROLLER"]}, "injectError", "did you mean Fetch?"),
        ({"injectError": ["FETCH", "NOT_CONTROLER"]}, "injectError", "did you mean NOT_CONTROLLER"),
        ({"delayOn": ["FETCH", 5], "times": 0}, "times", "expected a number from 1 on"),
        ({"delayOn": ["FETCH", 5], "forClient": 7}, "forClient", "7"),
        ({"disconnectOn": "FETCH", "twice": True}, "twice", "there is no field"),
        ({"blackholeClient": "raft", "match": {}}, "match", "no match beside it"),
    ],
)
def test_an_error_names_the_field(tree: Any, field: str, said: str) -> None:
    with pytest.raises(StubError) as refused:
        Stub.from_json(tree)
    assert said in str(refused.value)
    assert refused.value.field == field


@each_row(
    ("rule", "meant"),
    [
        (
            {"injectError": ["BROKER_HEARTBEAT", "NOT_CONTROLLER"], "once": True},
            stub("BrokerHeartbeat").once().inject_error("NOT_CONTROLLER"),
        ),
        (
            {"delayOn": ["FETCH", 500], "forClient": "raft", "times": 2, "name": "slow"},
            stub("Fetch", client_id__contains="raft").times(2).delay_on(500).named("slow"),
        ),
        (
            {"disconnectOn": "ALTER_PARTITION", "withProbability": 0.5, "seed": 3},
            stub("AlterPartition").with_probability(0.5, 3).pass_through().drop().disconnect_on(),
        ),
        ({"blackholeClient": "raft-client-1"}, stub(client_id__contains="raft-client-1").blackhole()),
    ],
)
def test_a_rule_of_kafkas_fault_proxy_is_a_stub(rule: dict[str, Any], meant: Stub) -> None:
    assert Stub.from_json(rule).to_json() == meant.to_json()
