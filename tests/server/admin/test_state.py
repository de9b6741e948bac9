from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from mockraft import Controller, Quorum
from mockraft.server.clock import VirtualClock

from ...topics import create_topics, topic

Asking = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def peopled(asking: Asking) -> AsyncIterator[httpx.AsyncClient]:
    """The admin API of a controller with two brokers and a topic."""
    async with Controller(brokers=2) as controller, asking(controller.double) as http:
        await create_topics(controller.bootstrap, topic("orders", 2, 2))
        yield http


async def test_the_state_is_read(peopled: httpx.AsyncClient) -> None:
    state = (await peopled.get("/v1/state")).json()
    assert [each["brokerId"] for each in state["brokers"]] == [1, 2]
    assert state["brokers"] == (await peopled.get("/v1/brokers")).json()["brokers"]
    assert [each["name"] for each in (await peopled.get("/v1/topics")).json()["topics"]] == ["orders"]
    assert (await peopled.get("/v1/quorum")).json()["leaderId"] == 3000
    assert (await peopled.get("/v1/health")).json()["brokers"] == {"total": 2, "fenced": 0}


async def test_brokers_are_fenced_unfenced_and_forgotten(peopled: httpx.AsyncClient) -> None:
    assert (await peopled.post("/v1/brokers/1/expire-session")).json()["fenced"] is True
    assert (await peopled.post("/v1/brokers/1/unfence")).json()["fenced"] is False
    assert (await peopled.post("/v1/brokers/1/fence")).json()["fenced"] is True
    directory = (await peopled.get("/v1/brokers/2")).json()["logDirs"][0]["id"]
    assert (await peopled.post("/v1/brokers/2/fail-log-dir", json={"id": directory})).json()["brokerId"] == 2
    assert (await peopled.post("/v1/brokers/2/unregister")).status_code == 204
    missing = await peopled.post("/v1/brokers/2/fence")
    assert (missing.status_code, missing.json()["errors"][0]["parameter"]) == (404, "brokerId")


async def test_a_leader_is_elected(peopled: httpx.AsyncClient) -> None:
    before = (await peopled.get("/v1/topics")).json()["topics"][0]["partitions"][0]
    other = next(each for each in before["replicas"] if each != before["leader"])
    after = await peopled.post("/v1/elections", json={"topic": "orders", "partition": 0, "leader": other})
    assert after.json()["leader"] == other
    assert (await peopled.post("/v1/elections", json={"topic": "none", "partition": 0})).status_code == 409


async def test_records_are_read_and_written(http: httpx.AsyncClient) -> None:
    read = (await http.get("/v1/records", params={"from": -2})).json()
    assert read["from"] + 2 == read["endOffset"]
    assert [each["offset"] for each in read["records"]] == [read["from"], read["from"] + 1]
    config = {"resourceType": 4, "resourceName": "1", "name": "log.retention.ms", "value": "1000"}
    written = await http.post("/v1/records", json={"records": [{"type": "ConfigRecord", "record": config}]})
    assert (written.status_code, written.json()["records"][0]["record"]) == (201, config)
    wrong = await http.post("/v1/records", json={"records": [{"type": "ConfigRecrd", "record": config}]})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "#/records/0/type")


async def test_a_snapshot_is_written_and_listed(http: httpx.AsyncClient) -> None:
    written = await http.post("/v1/snapshots")
    assert written.status_code == 201
    assert written.json() in (await http.get("/v1/snapshots")).json()["snapshots"]


async def test_state_round_trips_through_a_file(peopled: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    saved = await peopled.get("/v1/state/file")
    assert saved.headers["content-type"] == "application/octet-stream"
    octets = {"content-type": "application/octet-stream"}
    assert (await http.put("/v1/state/file", content=saved.content, headers=octets)).status_code == 204
    assert [each["name"] for each in (await http.get("/v1/topics")).json()["topics"]] == ["orders"]
    assert (await http.put("/v1/state/file", content=b"no state", headers=octets)).status_code == 409


async def test_a_virtual_clock_is_moved(asking: Asking) -> None:
    async with Controller(clock=VirtualClock(), brokers=0) as controller, asking(controller.double) as http:
        before = (await http.get("/v1/clock")).json()
        after = (await http.post("/v1/clock/advance", json={"ms": 12_000})).json()
        assert (before["virtual"], after["nowMs"] - before["nowMs"]) == (True, 12_000)


async def test_the_machines_clock_is_not(http: httpx.AsyncClient) -> None:
    refused = await http.post("/v1/clock/advance", json={"ms": 1})
    assert (refused.status_code, "--virtual-clock" in refused.json()["detail"]) == (409, True)


async def test_everything_is_reset(http: httpx.AsyncClient) -> None:
    await http.post("/v1/stubs", json={})
    assert (await http.post("/v1/reset")).status_code == 204
    assert (await http.get("/v1/stubs")).json() == {"stubs": []}
    assert (await http.post("/v1/reset", json={"state": True})).status_code == 204
    assert (await http.post("/v1/restart")).status_code == 204


async def test_state_reset_with_a_data_directory_is_a_conflict(asking: Asking, tmp_path: Path) -> None:
    async with Controller(data_dir=tmp_path) as controller, asking(controller.double) as http:
        assert (await http.post("/v1/reset", json={"state": True})).status_code == 409


async def test_a_quorums_node_is_elected(asking: Asking) -> None:
    async with Quorum(3) as quorum, asking(quorum.double) as http:
        assert (await http.post("/v1/quorum/elect", json={"node": 17})).status_code == 409
        assert (await http.post("/v1/quorum/resign")).status_code == 204
        assert (await http.post("/v1/restart")).status_code == 409
