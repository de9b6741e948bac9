"""Faults by name: their options, JSON form and switches."""

from __future__ import annotations

import re
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.stubs.faults import presets
from mockraft.server.stubs.faults.fault import REQUIRED, InForce, Kind, Parameter
from mockraft.server.stubs.faults.registry import Faults

from ....rows import each_row


class Wire:
    """A node's sockets, counted."""

    def __init__(self) -> None:
        self.looks = 0
        self.time_ms = 1_000

    def now_ms(self) -> int:
        return self.time_ms

    def faults_changed(self) -> None:
        self.looks += 1


class Preset:
    """Effects of a preset."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.calls = 0
        self.undone = 0
        self.breaks = False

    def on(self, double: Any, params: Any) -> InForce:
        if self.breaks:
            raise ValueError("there is no broker 9")
        self.received.append(dict(params))
        return InForce(self._undo, lambda: self.calls)

    def _undo(self) -> None:
        self.undone += 1


@pytest.fixture
def preset(monkeypatch: pytest.MonkeyPatch) -> Preset:
    made = Preset()
    parameters = (
        Parameter("broker_id", "int", REQUIRED, "the broker", minimum=0),
        Parameter("code", "string", "NONE", "the error"),
    )
    monkeypatch.setitem(presets.KINDS, "fence", Kind("fence", "A broker is fenced.", parameters, made.on))
    return made


@pytest.fixture
def faults() -> Faults:
    made = Faults()
    made.double = object()  # type: ignore[assignment]
    made.attach(Wire())
    return made


def test_a_fault_round_trips_its_fields_as_json() -> None:
    fault = Faults().add("latency", latency_ms=250, client_id="admin", toxicity=0.5, seed=3, name="slow admins")
    assert fault.to_json() == {
        "id": "latency-1",
        "name": "slow admins",
        "kind": "latency",
        "enabled": True,
        "match": {"clientId": "admin"},
        "toxicity": 0.5,
        "seed": 3,
        "params": {"direction": "downstream", "latencyMs": 250, "jitterMs": 0},
        "fired": 0,
    }
    for one in (fault, Faults().add("corrupt", probability=0.25, broker_id=[1, 2], seed=9)):
        assert Faults().add_json(one.to_json()).to_json() == one.to_json()


@each_row(
    ("tree", "complaint"),
    [
        ({"kind": "latancy"}, "kind='latancy': there is no such kind of fault; did you mean latency?"),
        ({}, "kind=None"),
        ({"kind": "latency", "params": {"latencyms": 1}}, "params.latencyms: latency has no such parameter"),
        ({"kind": "latency", "params": {"latencyMs": -1}}, "params.latencyMs=-1: must be at least 0"),
        ({"kind": "latency", "params": {"latencyMs": "1"}}, "params.latencyMs='1': must be an int"),
        ({"kind": "latency", "params": {"latencyMs": True}}, "params.latencyMs=True: must be an int"),
        ({"kind": "latency", "params": {"direction": "sideways"}}, "must be one of upstream, downstream, both"),
        ({"kind": "corrupt", "params": {"probability": 2}}, "params.probability=2: must be at most 1"),
        ({"kind": "latency", "params": [1]}, "params=[1]: must be an object"),
        ({"kind": "latency", "match": {"clientID": "x"}}, "match.clientID: a fault of connections has no such scope"),
        ({"kind": "latency", "match": {"brokerId": "1"}}, "match.brokerId='1': must be a number or a list of them"),
        ({"kind": "latency", "toxicity": 1.5}, "toxicity=1.5: must be the share"),
        ({"kind": "latency", "seed": "x"}, "seed='x': must be an integer"),
        ({"kind": "latency", "enabled": "yes"}, "enabled='yes': must be true or false"),
        ({"kind": "latency", "sead": 1}, "sead: a fault has no such field; did you mean seed?"),
        ({"kind": "latency", "id": 4}, "id=4: must be a text"),
        ("latency", "a fault must be an object, not 'latency'"),
    ],
)
def test_invalid_fault_is_refused_with_the_reason(tree: Any, complaint: str) -> None:
    faults = Faults()
    assert faults.add_json({"kind": "latency", "enabled": False, "params": []}).kind.name == "latency"
    faults.reset()
    with pytest.raises(ValueError, match=re.escape(complaint)):
        faults.add_json(tree)
    assert faults.all == []


def test_an_id_is_given_or_made_and_never_twice() -> None:
    faults = Faults()
    faults.add("down", id="mine", enabled=False)
    with pytest.raises(ValueError, match="id='mine': there is a fault of this id already"):
        faults.add("down", id="mine")
    assert [faults.add("down", enabled=False).id for _ in range(2)] == ["down-1", "down-2"]


def test_every_kind_is_listed_with_its_options() -> None:
    for kind in Faults().kinds.values():
        tree: Any = kind.to_json()
        assert tree["summary"].endswith(".")
        for parameter in tree["parameters"]:
            assert parameter.keys() >= {"name", "type", "required", "default", "help"}
            assert parameter["help"]


def test_sockets_look_again_whenever_toxics_change(faults: Faults) -> None:
    wire = faults._wires[0]
    assert isinstance(wire, Wire)
    before = wire.looks
    fault = faults.add("latency", broker_id=1)
    assert faults.toxics == (fault,)
    assert faults.depends_on_requests
    faults.enable(fault.id, False)
    assert not faults.toxics
    assert not faults.depends_on_requests
    faults.enable(fault.id)
    faults.remove(fault.id)
    assert wire.looks == before + 4


def test_a_fault_is_changed_where_it_is(faults: Faults) -> None:
    fault = faults.add("latency", latency_ms=10, jitter_ms=5)
    faults.change_json(fault.id, {"params": {"latencyMs": 20}, "toxicity": 0.5, "match": {"node": 1}})
    assert fault.params_now == {"direction": "downstream", "latency_ms": 20, "jitter_ms": 5}
    assert fault.to_json()["match"] == {"node": 1}
    faults.change_json(fault.id, {"enabled": False})
    assert faults.active == []
    with pytest.raises(ValueError, match=r"params\.latencyMs=-5"):
        faults.change_json(fault.id, {"params": {"latencyMs": -5}})
    with pytest.raises(ValueError, match="kind: cannot be changed"):
        faults.change_json(fault.id, {"kind": "down"})
    assert fault.params["latency_ms"] == 20


def test_a_preset_is_put_in_force_and_taken_back(faults: Faults, preset: Preset) -> None:
    fault = faults.add("fence", broker_id=1)
    assert preset.received == [{"broker_id": 1, "code": "NONE"}]
    assert faults.unfired() == [fault]
    preset.calls = 3
    assert fault.fired == 3
    faults.enable(fault.id, False)
    assert preset.undone == 1
    assert fault.fired == 3
    faults.change_json(fault.id, {"enabled": True, "params": {"brokerId": 2}})
    assert preset.received[-1]["broker_id"] == 2
    faults.reset()
    assert preset.undone == 2
    assert faults.all == []


def test_missing_option_of_a_preset_is_reported(faults: Faults, preset: Preset) -> None:
    with pytest.raises(ValueError, match=r"params\.brokerId: fence requires it \(the broker\)"):
        faults.add("fence")
    with pytest.raises(ValueError, match="match: fence is no toxic of connections"):
        faults.add_json({"kind": "fence", "params": {"brokerId": 1}, "match": {"node": 1}})
    assert preset.received == []


def test_a_preset_that_cannot_be_switched_on_is_not_kept(faults: Faults, preset: Preset) -> None:
    preset.breaks = True
    with pytest.raises(ValueError, match="there is no broker 9"):
        faults.add("fence", broker_id=9)
    assert faults.all == []


def test_a_preset_waits_for_a_controller(preset: Preset) -> None:
    faults = Faults()
    faults.add("fence", broker_id=1)
    assert preset.received == []
    faults.double = object()  # type: ignore[assignment]
    faults.attach(Wire())
    faults.begin(0)
    assert len(preset.received) == 1


def test_preset_timeout_is_reported(preset: Preset) -> None:
    faults = Faults()
    fault = faults.add("fence", broker_id=9)
    preset.breaks = True
    faults.double = object()  # type: ignore[assignment]
    faults.begin(0)
    assert fault.to_json()["error"] == "could not be switched on: there is no broker 9"


async def test_failed_activation_of_a_preset_removes_its_stubs() -> None:
    async with Controller(clock=VirtualClock()) as controller:
        controller.state.resign()
        with pytest.raises(RuntimeError, match="no controller is active"):
            controller.script.faults.add("fence", broker_id=1)
        assert controller.script.stubs.stubs == []
        assert controller.script.faults.all == []


async def test_reset_takes_all_faults_away_though_one_cannot_be_taken_back() -> None:
    async with Controller(clock=VirtualClock()) as controller:
        double = controller
        kind = Kind("stuck", "It cannot be taken back.", (), on=lambda double, params: stuck)
        double.script.faults.add("latency", id="first")
        fault = double.script.faults.get("first")
        fault.kind = kind
        fault.switch_on(lambda: stuck)
        double.script.faults.add("not_controller")
        with pytest.raises(RuntimeError, match="stuck"):
            double.reset()
        assert (double.script.faults.all, double.script.stubs.stubs) == ([], [])


def stuck() -> None:
    raise RuntimeError("stuck")
