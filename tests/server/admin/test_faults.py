from collections.abc import Callable

import httpx
import jsonschema_rs
import pytest
from mockraft.server.stubs.faults.fault import REQUIRED, Kind
from mockraft.server.stubs.faults.presets import KINDS
from mockraft.wire.names import camel

Schema = Callable[[str], jsonschema_rs.Draft4Validator]

LATENCY = {"kind": "latency", "params": {"latencyMs": 5}, "match": {"clientId": "nobody"}}


TOXICS = [each for each in KINDS.values() if each.toxic is not None]
VALUES = {"int": 5, "float": 0.5, "string": "x", "bool": True}


@pytest.mark.parametrize("kind", TOXICS, ids=lambda kind: kind.name)
async def test_each_toxic_is_added_by_its_schema(http: httpx.AsyncClient, schema: Schema, kind: Kind) -> None:
    needed = [each for each in kind.parameters if each.default is REQUIRED]
    params = {camel(each.name): each.choices[0] if each.choices else VALUES[each.type] for each in needed}
    tree = {"kind": kind.name, "params": params, "match": {"clientId": "nobody"}}
    assert [str(error) for error in schema("NewFault").iter_errors(tree)] == []
    added = await http.post("/v1/faults", json=tree)
    assert added.status_code == 201, added.text
    assert [str(error) for error in schema("Fault").iter_errors(added.json())] == []


async def test_the_kinds_are_listed_with_their_parameters(http: httpx.AsyncClient) -> None:
    kinds = {each["name"]: each for each in (await http.get("/v1/faults/kinds")).json()["kinds"]}
    assert kinds.keys() == KINDS.keys()
    assert "latencyMs" in [each["name"] for each in kinds["latency"]["parameters"]]
    assert "every 10 ms" in kinds["heartbeat_storm"]["reaction"]


async def test_a_fault_is_switched_changed_and_taken_away(http: httpx.AsyncClient) -> None:
    added = (await http.post("/v1/faults", json={"id": "slow", **LATENCY})).json()
    assert added["enabled"] is True
    assert (await http.post("/v1/faults", json={"id": "slow", **LATENCY})).status_code == 409
    changed = (await http.patch("/v1/faults/slow", json={"enabled": False, "params": {"latencyMs": 9}})).json()
    assert (changed["enabled"], changed["params"]["latencyMs"]) == (False, 9)
    assert [each["id"] for each in (await http.get("/v1/faults/unfired")).json()["faults"]] == ["slow"]
    assert (await http.delete("/v1/faults/slow")).status_code == 204
    assert (await http.get("/v1/faults/slow")).status_code == 404
    assert (await http.get("/v1/faults")).json() == {"faults": []}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"kind": "latenzy"}, "#/kind"),
        ({"params": {"latencyMs": -1}}, "#/params/latencyMs"),
        ({"params": {"latency": 5}}, "#/params/latency"),
        ({"match": {"client": "x"}}, "#/match/client"),
        ({"toxicity": 2}, "#/toxicity"),
    ],
)
async def test_a_fault_that_makes_no_sense_is_pointed_at(
    http: httpx.AsyncClient, schema: Schema, change: dict[str, object], pointer: str
) -> None:
    assert not schema("NewFault").is_valid({**LATENCY, **change})
    answer = await http.post("/v1/faults", json={**LATENCY, **change})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


async def test_a_plan_runs_and_is_stopped(http: httpx.AsyncClient) -> None:
    steps = [{"at": 0, "fault": {"id": "now", **LATENCY}}, {"at": 600_000, "duration": 5, "fault": LATENCY}]
    begun = await http.post("/v1/plan", json={"plan": steps})
    assert (begun.status_code, [step["state"] for step in begun.json()["plan"]]) == (201, ["on", "waiting"])
    assert (await http.get("/v1/plan")).json()["plan"][0]["faultId"] == "now"
    wrong = await http.post("/v1/plan", json={"plan": [{"at": 0, "fault": {"kind": "latenzy"}}]})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "#/plan/0/fault/kind")
    assert (await http.delete("/v1/plan")).status_code == 204
    assert (await http.delete("/v1/faults")).status_code == 204
    assert (await http.get("/v1/plan")).json() == {"plan": []}
