import json
from collections.abc import Awaitable, Callable

import httpx
import jsonschema_rs
import pytest
from mockraft import stub
from mockraft.server.stubs.actions import ACTIONS
from mockraft.server.stubs.stub import Stub
from mockraft.wire.json_form import Json

Ask = Callable[..., Awaitable[None]]
Schema = Callable[[str], jsonschema_rs.Draft4Validator]

CLUSTER = {
    "match": {"api": "DescribeCluster"},
    "trigger": {"once": True},
    "actions": [{"injectError": "UNKNOWN_SERVER_ERROR"}],
}

WRITTEN_IN_PYTHON = [
    stub("BrokerHeartbeat", broker_id=1, want_fence=True, current_metadata_offset__gte=5)
    .times(2)
    .inject_error("NOT_CONTROLLER"),
    stub("BrokerHeartbeat", "BrokerRegistration", version={"min": 1, "max": 2}).on_call(3).drop(),
    stub("ApiVersions", client_id__startswith="raft").with_probability(0.5, seed=7).delay_on(500, jitter_ms=10),
    stub("BrokerHeartbeat").in_scenario("S", requires="Started", then="Over").answer({"isFenced": True}),
    stub().every_time().blackhole(),
]


def test_stubs_that_python_writes_are_valid_by_the_schema(schema: Schema) -> None:
    added = [each.named("", id="x").to_json() for each in WRITTEN_IN_PYTHON]
    wrong = [str(error) for each in added for error in schema("Stub").iter_errors(each)]
    assert wrong == []


@pytest.mark.parametrize("name", list(ACTIONS))
def test_each_actions_example_is_valid_by_the_schema_and_read(schema: Schema, name: str) -> None:
    tree: Json = {"match": {"api": "BrokerHeartbeat"}, "actions": [{name: ACTIONS[name].example}]}
    assert [str(error) for error in schema("NewStub").iter_errors(tree)] == []
    assert [action.name for action in Stub.from_json(tree).actions] == [name]


@pytest.mark.parametrize(
    "tree",
    [
        {"mach": {}},
        {"match": {"appi": "Fetch"}},
        {"trigger": {"times": 0}},
        {"trigger": "sometimes"},
        {"priority": "high"},
        {"scenario": {"requires": "Started"}},
        {"actions": [{"explode": True}]},
    ],
    ids=json.dumps,
)
async def test_a_stub_that_the_schema_refuses_is_refused(
    http: httpx.AsyncClient, schema: Schema, tree: dict[str, object]
) -> None:
    assert not schema("NewStub").is_valid(tree)
    answer = await http.post("/v1/stubs", json=tree)
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "tree",
    [
        {"match": {"appi": "Fetch"}},
        {"match": {"brokerId": {"atLeast": 1}}},
        {"trigger": {"times": 0}},
        {"actions": [{"delayOn": {"ms": 1, "jiter": 2}}]},
    ],
    ids=json.dumps,
)
async def test_schema_error_contains_a_pointer(http: httpx.AsyncClient, tree: dict[str, object]) -> None:
    answer = await http.post("/v1/stubs", json=tree)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith(f"#/{next(iter(tree))}")


async def test_a_stub_serves_and_counts(http: httpx.AsyncClient, ask: Ask) -> None:
    added = await http.post("/v1/stubs", json=CLUSTER)
    assert added.status_code == 201
    path = f"/v1/stubs/{added.json()['id']}"
    assert [each["id"] for each in (await http.get("/v1/stubs/unused")).json()["stubs"]] == [added.json()["id"]]
    await ask()
    assert (await http.get(path)).json()["calls"] == 1
    served = (await http.get("/v1/requests", params={"api": "DescribeCluster"})).json()["requests"]
    assert [(each["servedBy"], each["error"]) for each in served] == [
        (f"stub {added.json()['id']}", "UNKNOWN_SERVER_ERROR")
    ]
    assert (await http.get("/v1/stubs/unused")).json() == {"stubs": []}


async def test_a_stub_is_replaced_switched_and_taken_away(http: httpx.AsyncClient) -> None:
    await http.post("/v1/stubs", json={"id": "a", **CLUSTER})
    assert (await http.post("/v1/stubs", json={"id": "a", **CLUSTER})).status_code == 409
    assert (await http.patch("/v1/stubs/a", json={"enabled": False})).json()["enabled"] is False
    assert (await http.put("/v1/stubs/a", json={"name": "other"})).json()["name"] == "other"
    assert (await http.put("/v1/stubs/a", json={"id": "b"})).status_code == 409
    assert (await http.delete("/v1/stubs/a")).status_code == 204
    assert [(await http.request(method, "/v1/stubs/a", json={})).status_code for method in ("GET", "PUT")] == [404, 404]


async def test_import_is_atomic(http: httpx.AsyncClient) -> None:
    wrong = await http.post("/v1/stubs/import", json={"stubs": [{"id": "a"}, {"trigger": {"times": 0}}]})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "#/stubs/1/trigger/times")
    taken = await http.post("/v1/stubs/import", json={"stubs": [{"id": "a"}, {"id": "a"}]})
    assert (taken.status_code, taken.json()["errors"][0]["pointer"]) == (409, "#/stubs/1/id")
    assert (await http.get("/v1/stubs")).json() == {"stubs": []}
    assert (await http.post("/v1/stubs/import", json={"stubs": [CLUSTER, CLUSTER]})).status_code == 201
    assert len((await http.get("/v1/stubs")).json()["stubs"]) == 2
    assert (await http.delete("/v1/stubs")).status_code == 204


async def test_scenarios_are_read_set_and_reset(http: httpx.AsyncClient) -> None:
    await http.post("/v1/stubs", json={"scenario": {"name": "S", "requires": "Started", "then": "Over"}})
    assert (await http.put("/v1/scenarios/S", json={"state": "Over"})).json() == {"name": "S", "state": "Over"}
    assert (await http.put("/v1/scenarios/T", json={"state": "Over"})).status_code == 404
    await http.post("/v1/scenarios/reset")
    assert (await http.get("/v1/scenarios")).json() == {"scenarios": [{"name": "S", "state": "Started"}]}


async def test_blackholed_clients_are_released(http: httpx.AsyncClient) -> None:
    assert (await http.post("/v1/stubs/release", json={})).json() == {"released": 0}
