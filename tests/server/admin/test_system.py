import inspect

import httpx
from fastapi.routing import APIRoute
from mockraft import Controller
from mockraft.server.admin.app import ROUTERS


async def test_health_lists_the_running_parts(http: httpx.AsyncClient, controller: Controller) -> None:
    health = (await http.get("/v1/health")).json()
    assert health["status"] == "up"
    assert health["clusterId"] == controller.cluster_id
    assert health["bootstrap"] == controller.bootstrap
    assert (health["nodes"], health["brokers"]) == ([3000], {"total": 0, "fenced": 0})


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


async def test_reset_restores_the_journal_settings(http: httpx.AsyncClient) -> None:
    before = (await http.get("/v1/settings")).json()
    await http.patch("/v1/settings", json={"journalEnabled": False, "journalEntriesMax": 1})
    await http.post("/v1/reset")
    assert (await http.get("/v1/settings")).json() == before


async def test_api_without_a_recorder_lists_no_recordings_and_names_the_alternative(http: httpx.AsyncClient) -> None:
    assert (await http.get("/v1/recordings")).json() == {"recordings": []}
    refused = await http.post("/v1/recordings", json={"upstream": "127.0.0.1:9093"})
    assert (refused.status_code, "mockraft serve and Controller" in refused.json()["detail"]) == (409, True)
