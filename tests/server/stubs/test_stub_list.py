"""The list of stubs, and the file it is read from."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from mockraft import Stub, stub
from mockraft.files.trees import GivenFileError
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.script import Script
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.server.stubs.stub_list import StubList
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest

from ...rows import each_row
from .test_match import asked


@pytest.fixture
def stubs() -> StubList:
    return StubList()


def served(stubs: StubList, count: int = 1, **fields: Any) -> list[str | None]:
    """Ids of the stubs that serve so many heartbeats of broker 1."""
    request = BrokerHeartbeatRequest(**{"broker_id": 1, **fields})
    found = [stubs.match(asked(request, broker_id=request.broker_id)) for _ in range(count)]
    return [None if each is None else each.id for each in found]


def test_the_highest_priority_serves_and_among_equals_the_newest(stubs: StubList) -> None:
    stubs.add(stub("BrokerHeartbeat").named("", id="old"))
    stubs.add(stub("BrokerHeartbeat").named("", id="new"))
    assert served(stubs) == ["new"]
    stubs.add(stub("BrokerHeartbeat", broker_id=1).named("", id="low").with_priority(-1))
    assert served(stubs) == ["new"]
    stubs.add(stub().named("", id="high").with_priority(1).once())
    assert served(stubs, 2) == ["high", "new"]
    assert [each.id for each in stubs.stubs] == ["high", "new", "old", "low"]


def test_a_stub_that_is_not_for_it_lets_the_next_one_serve(stubs: StubList) -> None:
    stubs.add(stub("BrokerHeartbeat").named("", id="any"))
    stubs.add(stub("BrokerHeartbeat", broker_id=[2, 3]).named("", id="others"))
    stubs.add(stub("BrokerHeartbeat", broker_id=1).named("", id="twice").times(2))
    stubs.add(stub("Fetch").named("", id="fetch"))
    assert served(stubs, 3) == ["twice", "twice", "any"]
    assert served(stubs, broker_id=3) == ["others"]
    assert served(stubs, broker_id=9) == ["any"]


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
def test_triggers_fire_on_their_calls(stubs: StubList, trigger: Any, calls: list[int]) -> None:
    live = stubs.add(trigger(stub("BrokerHeartbeat")))
    found = served(stubs, 4)
    assert [number for number, each in enumerate(found, 1) if each] == calls
    assert (live.match_count, live.call_count) == (4, len(calls))


def test_chance_repeats_with_its_seed(stubs: StubList) -> None:
    def fired(seed: int) -> list[bool]:
        stubs.reset()
        stubs.add(stub("BrokerHeartbeat").with_probability(0.5, seed))
        return [each is not None for each in served(stubs, 200)]

    assert fired(1) == fired(1) != fired(2)
    assert 60 < sum(fired(1)) < 140


def test_scenarios_go_from_state_to_state(stubs: StubList) -> None:
    stubs.add(stub("BrokerHeartbeat").named("", id="down").in_scenario("failover", requires="Started", then="Moved"))
    stubs.add(stub("BrokerHeartbeat").named("", id="moved").in_scenario("failover", requires="Moved"))
    assert stubs.scenarios == {"failover": "Started"}
    assert served(stubs, 3) == ["down", "moved", "moved"]
    stubs.set_scenario("failover", "Nowhere")
    assert served(stubs) == [None]
    stubs.reset_scenarios()
    assert served(stubs) == ["down"]
    with pytest.raises(KeyError, match="did you mean failover"):
        stubs.set_scenario("failovr", "Moved")


def test_stubs_are_switched_off_replaced_and_taken_away(stubs: StubList) -> None:
    live = stubs.add(stub("BrokerHeartbeat").named("a", id="a"))
    assert stubs.enable("a", False) is live
    assert served(stubs) == [None]
    assert stubs.unused() == []
    stubs.enable("a")
    assert stubs.unused() == [live]
    assert served(stubs) == ["a"]
    assert (stubs.unused(), live.called) == ([], True)
    other = stubs.replace("a", stub("BrokerHeartbeat").named("b").in_scenario("new", requires="Started"))
    assert (other.id, other.call_count, served(stubs)) == ("a", 0, ["a"])
    with pytest.raises(StubError, match="there is a stub 'a' already"):
        stubs.add(stub().named("", id="a"))
    stubs.remove("a")
    assert (stubs.is_armed, served(stubs)) == (False, [None])
    with pytest.raises(KeyError, match="there are no stubs"):
        stubs.remove("a")
    stubs.strict = True
    assert stubs.is_armed
    stubs.reset()
    assert (stubs.is_armed, stubs.strict) == (False, False)


def test_ids_are_made_for_those_that_have_none(stubs: StubList) -> None:
    stubs.add(stub().named("", id="stub-2"))
    assert [stubs.add(Stub()).id for _ in range(2)] == ["stub-3", "stub-4"]


def test_near_misses_list_actual_values_by_field(stubs: StubList) -> None:
    stubs.add(stub("Fetch").named("", id="far"))
    stubs.add(stub("BrokerHeartbeat", broker_id=2, want_fence=True).named("", id="nearer"))
    stubs.add(stub("BrokerHeartbeat", broker_id=2, want_fence=False).named("fenced 2", id="near"))
    stubs.add(stub("BrokerHeartbeat", want_fence=False, current_metadata_offset__gte=9, version=2).named("", id="less"))
    misses = stubs.near_misses(asked())
    assert [miss.stub.id for miss in misses if miss.stub] == ["nearer", "near", "less"]
    assert misses[1].to_json()["conditions"] == [
        {"field": "api", "expected": "BrokerHeartbeat", "actual": "BrokerHeartbeat", "held": True},
        {"field": "brokerId", "expected": 2, "actual": 1, "held": False},
        {"field": "wantFence", "expected": False, "actual": True, "held": False},
    ]
    assert "stub near (fenced 2):\n  ✓ api" in misses[1].describe()
    assert "✗ brokerId: wanted 2, there was 1" in misses[1].describe()


def test_near_miss_names_the_scenario_or_trigger(stubs: StubList) -> None:
    spent = stubs.add(stub("BrokerHeartbeat").once())
    waiting = stubs.add(stub("BrokerHeartbeat").in_scenario("s", requires="Later"))
    served(stubs)
    by_stub = {miss.stub.id: miss.conditions[-1] for miss in stubs.near_misses(asked()) if miss.stub}
    assert by_stub[spent.id].path == "trigger"
    assert (by_stub[waiting.id].path, by_stub[waiting.id].actual) == ("scenario", "Started")


def test_hundreds_of_stubs_for_others_are_not_tried(stubs: StubList) -> None:
    def never(value: Any) -> bool:
        raise AssertionError("it was tried")

    for number in range(300):
        stubs.add(stub("Fetch", client_id=never))
        stubs.add(stub("BrokerHeartbeat", broker_id=1_000 + number, where={"wantFence": never}))
    assert served(stubs) == [None]


def test_near_miss_of_a_long_text_fits_one_line(stubs: StubList) -> None:
    stubs.add(stub(client_id="x"))
    (condition,) = stubs.near_misses(asked(client_id="y" * 10_000))[0].conditions
    assert len(str(condition)) < 300
    assert str(condition).endswith("… (10,002 characters)")


YAML = """
stubs:
  - match: {api: BrokerHeartbeat, brokerId: 1}
    trigger: {times: 2}
    actions: [{injectError: NOT_CONTROLLER}]
  - id: slow
    match: {api: [Fetch, FetchSnapshot]}
    actions: [{delayOn: {ms: 500, jitterMs: 100}}]
"""

BOMB = "\n".join(["- &a0 [x]", *(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 20)}]" for n in range(1, 10))])
"""Ten lines that come to billions of values."""

WRONG_FIELD = (
    "stubs.yaml, line 3: stubs[0].match.brokrId: there is no match by 'brokrId'; did you mean brokerId or broker?"
    "; a field of the request goes into where"
)


def test_a_part_that_is_null_is_empty(tmp_path: Path) -> None:
    assert read_stub_file(written(tmp_path, "a.json", '{"stubs": null}')).stubs == []


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_yaml_equals_json(tmp_path: Path) -> None:
    of_yaml = read_stub_file(written(tmp_path, "stubs.yaml", YAML))
    of_json = read_stub_file(written(tmp_path, "stubs.json", json.dumps(of_yaml.to_json())))
    assert of_yaml == of_json
    script = Script()
    script.load(of_json)
    assert [each.id for each in script.stubs.stubs] == ["slow", "stub-1"]


@each_row(
    ("name", "text", "wrong"),
    [
        ("a.json", "{", "line 1: not JSON"),
        ("a.yaml", "stubs: [", "not YAML"),
        ("a.json", '{"stub": []}', "stub: there is no part of a stub file 'stub'; did you mean stubs?"),
        ("a.json", '{"stubs": 3}', "stubs: expected a list, got 3"),
        ("a.json", "[" * 100_000, "nested too deep"),
        ("a.yaml", "[" * 5_000, "nested too deep"),
        ("a.yaml", BOMB, "too large: 328,"),
        ("a.yaml", "stubs: &a [{}, *a]", "line 1: an alias refers to a node that contains it"),
        ("a.yaml", "\x00", "not YAML"),
        ("a.yaml", "stubs: [", "line 2: not YAML"),
        ("a.yaml", "stubs: []\nfualts: []", "a.yaml, line 2: fualts: there is no part"),
        ("a.yaml", "stubs:\n- match:\n    api: Fetch\n    brokrId: 1", "line 4: stubs[0].match.brokrId"),
        ("a.yaml", "faults:\n- kind: down\n- kind: latancy", "line 3: faults[1]: kind='latancy'"),
        ("a.yaml", "- match: {}\n  actions: []\n  match: {}", "line 3: the key 'match' is there twice"),
        ("a.json", '[{"match": {}, "match": {}}]', "match: the key is there twice"),
        ("a.yaml", "- match:\n    on: 1", "line 2: the key 'on' is no text: put it in quotes"),
        ("a.yaml", "? [a]\n: 1", "line 1: a key is no text"),
        ("a.yaml", "stubs: !!bool maybe", "not YAML: a value is not of its tag's type"),
        ("a.yaml", "stubs: !!int ''", "not YAML: a value is not of its tag's type"),
        ("a.json", "7", "expected an object with stubs, faults, plan"),
        ("a.json", '[{"id": "a"}, {"id": "a"}]', "stubs[1].id: there is a stub 'a' already"),
        ("a.json", '[{"actions": [{"injectEror": 1}]}]', "stubs[0].actions[0]: there is no action 'injectEror'"),
        ("stubs.yaml", YAML.replace("brokerId", "brokrId"), WRONG_FIELD),
    ],
)
def test_invalid_files_are_reported(tmp_path: Path, name: str, text: str, wrong: str) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(GivenFileError) as refused:
        read_stub_file(path)
    assert str(refused.value).startswith(str(path))
    assert wrong in str(refused.value)
    with pytest.raises(GivenFileError, match=r"nothing\.json: No such file"):
        read_stub_file(tmp_path / "nothing.json")


@each_row("text", ["", "# - match: {}", "stubs:\n# - match: {}"])
def test_a_file_without_entries_is_empty(tmp_path: Path, text: str) -> None:
    assert read_stub_file(written(tmp_path, "a.yaml", text)).stubs == []


def test_yaml_anchor_may_be_reused(tmp_path: Path) -> None:
    text = """
        stubs:
          - {match: &first {api: BrokerHeartbeat, brokerId: 1}, actions: [drop]}
          - {match: {<<: *first, brokerId: 2}, actions: [drop]}
        """
    found = read_stub_file(written(tmp_path, "stubs.yaml", text))
    assert [each.match.to_json() for each in found.stubs] == [
        {"api": "BrokerHeartbeat", "brokerId": 1},
        {"api": "BrokerHeartbeat", "brokerId": 2},
    ]


def test_yaml_without_pyyaml_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_yaml(name: str, *rest: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    with pytest.raises(GivenFileError, match=r"pip install 'mockraft\[admin\]', or write"):
        read_stub_file(written(tmp_path, "stubs.yaml", YAML))


def test_a_file_may_have_faults_and_a_plan_and_is_taken_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    latency = {"kind": "latency", "params": {"latencyMs": 5}}
    tree: dict[str, Any] = {"stubs": [{}], "faults": [latency], "plan": [{"at": 0, "duration": 10, "fault": latency}]}
    script = Script()
    script.load(read_stub_file(written(tmp_path, "a.json", json.dumps(tree))))
    assert (len(script.stubs.stubs), len(script.faults.all)) == (1, 1)
    tree["plan"].append({"at": 0, "fault": {"kind": "latenzy"}})
    script = Script()
    with pytest.raises(ValueError, match=r"plan\[1\].*latenzy"):
        script.load(read_stub_file(written(tmp_path, "b.json", json.dumps(tree))))
    assert (script.stubs.stubs, script.faults.all) == ([], [])
