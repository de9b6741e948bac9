"""State, system and life of the controller over HTTP."""

import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute
from mockraft import Controller, Quorum
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.admin.app import ROUTERS
from mockraft.wire.client import DisconnectedError
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord

from ...topics import create_topics, topic

Asking = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def peopled(asking: Asking) -> AsyncIterator[httpx.AsyncClient]:
    """The admin API of a controller with two brokers and a topic."""
    async with Controller(brokers=2) as controller, asking(controller) as http:
        await create_topics(controller.bootstrap, topic("orders", 2, 2))
        yield http


async def test_the_state_is_read(peopled: httpx.AsyncClient) -> None:
    state = (await peopled.get("/v1/state")).json()
    brokers = (await peopled.get("/v1/brokers")).json()["brokers"]
    for each in (*state["brokers"], *brokers):
        del each["lastContactMs"], each["metadataOffset"], each["lag"]
    assert [each["brokerId"] for each in state["brokers"]] == [1, 2]
    assert state["brokers"] == brokers
    (orders,) = state["topics"]
    assert (orders["name"], [each["partition"] for each in orders["partitions"]]) == ("orders", [0, 1])
    for names, found in (([], [orders]), (["orders"], [orders]), (["no"], [])):
        assert (await peopled.get("/v1/topics", params={"name": names})).json() == {"topics": found}
    counts = {"partitions": 2, "underReplicated": 0, "leaderless": 0}
    overview = {"name": "orders", "topicId": orders["topicId"], **counts}
    assert (await peopled.get("/v1/topics/overview")).json() == {"topics": [overview]}
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


async def test_events_tell_by_what_each_broker_was_fenced(asking: Asking) -> None:
    async with Controller(clock="virtual") as controller, asking(controller) as http:
        controller.state.append(RegisterBrokerRecord(broker_id=number) for number in (1, 2, 3, 4))
        for broker in controller.state.brokers():
            controller.state.unfence(broker.broker_id)
        await create_topics(controller.bootstrap, topic("orders", 1, 1))
        controller.stub("BrokerHeartbeat", broker_id=1).named("outage").inject_error("NOT_CONTROLLER")
        fault = controller.faults.lost_heartbeats(broker_id=2, name="silence")
        before = (await http.get("/v1/events")).json()["next"]
        controller.advance(1)
        await controller.ask(BrokerHeartbeatRequest(broker_id=1))
        with pytest.raises(DisconnectedError):
            await controller.ask(BrokerHeartbeatRequest(broker_id=2))
        controller.state.fence(3)
        controller.advance(12_000)
        controller.faults.remove(fault.id)
        after = (await http.get("/v1/events", params={"afterId": before})).json()["events"]
        told = [f"{each['subject']} {each['name']} {each['change']}: {each['why']}" for each in after]
        assert told == [
            "broker 3 fenced: a command",
            "broker 1 fenced: session timed out; its last heartbeat was answered with NOT_CONTROLLER by stub outage",
            "broker 2 fenced: session timed out; its last heartbeat was dropped by fault silence",
            "broker 4 fenced: session timed out",
            "fault silence off: ",
        ]
        of_two = (await http.get("/v1/events", params={"brokerId": 2})).json()["events"]
        assert [each["change"] for each in of_two] == ["registered", "unfenced", "fenced"]
        assert [each["name"] for each in (await http.get("/v1/stubs")).json()["stubs"]] == ["outage"]


async def test_records_are_read_and_written(http: httpx.AsyncClient) -> None:
    read = (await http.get("/v1/records", params={"from": -2})).json()
    assert read["from"] + 2 == read["endOffset"]
    assert [each["offset"] for each in read["records"]] == [read["from"], read["from"] + 1]
    config = {"resourceType": 4, "resourceName": "1", "name": "log.retention.ms", "value": "1000"}
    written = await http.post("/v1/records", json={"records": [{"type": "ConfigRecord", "record": config}]})
    assert (written.status_code, written.json()["records"][0]["record"]) == (201, config)
    wrong = await http.post("/v1/records", json={"records": [{"type": "ConfigRecrd", "record": config}]})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "#/records/0/type")


async def test_state_round_trips_through_a_file(peopled: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    saved = await peopled.get("/v1/state/file")
    assert saved.headers["content-type"] == "application/octet-stream"
    octets = {"content-type": "application/octet-stream"}
    assert (await http.put("/v1/state/file", content=saved.content, headers=octets)).status_code == 204
    assert [each["name"] for each in (await http.get("/v1/topics")).json()["topics"]] == ["orders"]
    assert (await http.put("/v1/state/file", content=b"no state", headers=octets)).status_code == 409


async def test_a_virtual_clock_is_moved_and_the_machines_is_not(asking: Asking, http: httpx.AsyncClient) -> None:
    async with Controller(clock=VirtualClock(), brokers=0) as controller, asking(controller) as virtual:
        before = (await virtual.get("/v1/clock")).json()
        after = (await virtual.post("/v1/clock/advance", json={"ms": 12_000})).json()
        assert (before["virtual"], after["nowMs"] - before["nowMs"]) == (True, 12_000)
    refused = await http.post("/v1/clock/advance", json={"ms": 1})
    assert (refused.status_code, "--virtual-clock" in refused.json()["detail"]) == (409, True)


async def test_everything_is_reset(http: httpx.AsyncClient) -> None:
    before = (await http.get("/v1/settings")).json()
    await http.patch("/v1/settings", json={"journalEnabled": False, "journalEntriesMax": 1})
    await http.post("/v1/stubs", json={})
    assert (await http.post("/v1/reset")).status_code == 204
    assert (await http.get("/v1/stubs")).json() == {"stubs": []}
    assert (await http.get("/v1/settings")).json() == before
    assert (await http.post("/v1/reset", json={"state": True})).status_code == 204
    assert (await http.post("/v1/restart")).status_code == 204


async def test_state_reset_with_a_data_directory_is_a_conflict(asking: Asking, tmp_path: Path) -> None:
    async with Controller(data_dir=tmp_path) as controller, asking(controller) as http:
        assert (await http.post("/v1/reset", json={"state": True})).status_code == 409


async def test_a_quorums_node_is_elected(asking: Asking) -> None:
    async with Quorum(3) as quorum, asking(quorum) as http:
        assert (await http.post("/v1/quorum/elect", json={"node": 17})).status_code == 409
        assert (await http.post("/v1/quorum/resign")).status_code == 204
        assert (await http.post("/v1/restart")).status_code == 409


async def test_health_lists_the_running_parts(http: httpx.AsyncClient, controller: Controller) -> None:
    health = (await http.get("/v1/health")).json()
    assert health["status"] == "up"
    assert health["clusterId"] == controller.cluster_id
    assert health["bootstrap"] == controller.bootstrap
    assert (health["nodes"], health["brokers"]) == ([3000], {"total": 0, "fenced": 0})
    assert (health["release"], health["metadataVersion"]) == ("4.4", 33)


async def test_settings_are_changed_one_by_one(http: httpx.AsyncClient, controller: Controller) -> None:
    changed = (await http.patch("/v1/settings", json={"journalEntriesMax": 7})).json()
    assert changed["journalEntriesMax"] == controller.journal.entries_max == 7
    assert changed["journalEnabled"] is True
    await http.patch("/v1/settings", json={"journalEnabled": False})
    assert not controller.journal.enabled
    assert (await http.get("/v1/settings")).json() == {**changed, "journalEnabled": False}


async def test_metrics_are_given_to_prometheus(http: httpx.AsyncClient) -> None:
    answer = await http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "# TYPE" in answer.text


def test_every_operation_runs_in_the_controllers_own_thread() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    threaded = [route.path for route in routes if not inspect.iscoroutinefunction(route.endpoint)]
    assert routes != []
    assert threaded == []


async def test_api_without_a_recorder_lists_no_recordings_and_names_the_alternative(http: httpx.AsyncClient) -> None:
    assert (await http.get("/v1/recordings")).json() == {"recordings": []}
    refused = await http.post("/v1/recordings", json={"upstream": "127.0.0.1:9093"})
    assert (refused.status_code, "mockraft serve and Controller" in refused.json()["detail"]) == (409, True)


async def test_health_names_a_failed_node_and_is_down_without_a_majority(asking: Asking) -> None:
    async with Quorum(3) as quorum, asking(quorum) as http:
        first, second, _ = (node.controller for node in quorum.nodes().values())
        first.tick_failure = "ValueError: x"
        answer = await http.get("/v1/health")
        assert (answer.status_code, answer.json()["failedNodes"]) == (200, ["node 3000: ValueError: x"])
        second.tick_failure = "ValueError: y"
        answer = await http.get("/v1/health")
        reason = "node 3000: ValueError: x; node 3001: ValueError: y"
        assert (answer.status_code, answer.json()["detail"]) == (503, reason)


async def test_health_of_a_killed_quorum_is_a_problem_and_journals_and_clock_remain(
    asking: Asking, tmp_path: Path
) -> None:
    async with Quorum(2) as quorum, asking(quorum) as http:
        await quorum.ask(ApiVersionsRequest(), client_id="before")
        now_ms = quorum.now_ms
        for node_id in quorum.node_ids:
            await quorum.kill(node_id)

        for path in ("/v1/health", "/v1/brokers", "/v1/quorum", "/v1/topics"):
            answer = await http.get(path)
            assert (path, answer.status_code) == (path, 503)
            assert answer.json()["detail"] == "no controller runs: every node of the quorum was killed"
        for command in (quorum.state.brokers, quorum.restart_in_place):
            with pytest.raises(RuntimeError, match="no controller runs"):
                command()
        assert (await http.post("/v1/reset", json={"state": True})).status_code in (409, 503)
        assert (await http.get("/metrics")).status_code == 200
        assert (await http.get("/v1/settings")).json()["journalEnabled"] is True
        assert (await http.get("/v1/clock")).json()["nowMs"] >= now_ms
        assert [each.client_id for each in quorum.requests(client_id="before")] == ["before"]
        quorum.write_journal(tmp_path / "journal.pcapng")
        assert (tmp_path / "journal.pcapng").stat().st_size > 200


async def test_restarted_node_continues_its_journal(asking: Asking) -> None:
    async with Quorum(2) as quorum, asking(quorum) as http:
        await quorum.ask(ApiVersionsRequest(), client_id="before", node=3001)
        await quorum.kill(3001)
        killed = (await http.get("/v1/requests", params={"node": 3001, "clientId": "before"})).json()
        await quorum.restart(3001)
        await quorum.ask(ApiVersionsRequest(), client_id="after", node=3001)

        assert [each["clientId"] for each in killed["requests"]] == ["before"]
        assert [each.client_id for each in quorum.requests(node=3001) if each.client_id in ("before", "after")] == [
            "before",
            "after",
        ]
