"""Recordings over HTTP: another mockraft answers, and its answers become this one's."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from mockraft import Controller
from mockraft.server.admin.app import create_app
from mockraft.testing import recorder
from mockraft.testing.recorder import RECORDINGS_MAX, LocalRecorder
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

from ..topics import ask


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller(cluster_id="the-double") as running:
        yield running


@pytest.fixture
async def upstream() -> AsyncIterator[Controller]:
    async with Controller(cluster_id="the-upstream") as running:
        yield running


@pytest.fixture
async def http(controller: Controller) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the admin API of the controller."""
    recordings = LocalRecorder()
    app = create_app(controller, recorder=recordings)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asked:
        yield asked
    await recordings.close()


async def cluster_id(bootstrap: str, client_id: str = "a-test") -> str:
    """The cluster as a controller reports it."""
    return (await ask(bootstrap, DescribeClusterRequest(endpoint_type=2), client_id=client_id)).cluster_id


async def test_recorded_answers_of_the_upstream_are_replayed(
    http: httpx.AsyncClient, controller: Controller, upstream: Controller
) -> None:
    started = await http.post("/v1/recordings", json={"upstream": upstream.bootstrap})
    assert started.status_code == 201
    path = f"/v1/recordings/{started.json()['id']}"
    bootstrap = started.json()["bootstrap"]
    assert bootstrap != upstream.bootstrap
    assert await cluster_id(bootstrap) == "the-upstream"

    shown = (await http.get(path)).json()
    assert (shown["running"], shown["byApi"]["DescribeCluster"]) == (True, 1)
    so_far = (await http.get(f"{path}/stubs")).json()
    assert so_far["loaded"] is False
    assert "DescribeCluster" in [each["match"]["api"] for each in so_far["stubs"]]
    assert await cluster_id(controller.bootstrap) == "the-double"

    stopped = (await http.post(f"{path}/stop", params={"load": "true"})).json()
    assert stopped["loaded"] is True
    assert len(stopped["stubs"]) == len(so_far["stubs"])
    assert await cluster_id(controller.bootstrap) == "the-upstream"
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await cluster_id(bootstrap)
    assert (await http.get("/v1/recordings")).json()["recordings"][0]["running"] is False
    assert (await http.delete(path)).status_code == 204
    assert (await http.get(path)).status_code == 404


async def test_options_are_those_of_record(http: httpx.AsyncClient, upstream: Controller) -> None:
    body = {"upstream": upstream.bootstrap, "filters": ["DescribeCluster"], "anyVersion": True, "anyClient": True}
    started = (await http.post("/v1/recordings", json={**body, "only": ["endpointType"]})).json()
    await cluster_id(started["bootstrap"])
    stubs = (await http.post(f"/v1/recordings/{started['id']}/stop")).json()["stubs"]
    assert [each["match"] for each in stubs] == [{"api": "DescribeCluster", "where": {"endpointType": 2}}]


async def test_journal_stubs_repeat_the_controllers_answers(http: httpx.AsyncClient, controller: Controller) -> None:
    await cluster_id(controller.bootstrap)
    wanted = {"match": {"api": "DescribeCluster"}, "anyClient": True}
    made = (await http.post("/v1/recordings/journal", json=wanted, params={"load": "true"})).json()
    assert [each["match"]["api"] for each in made["stubs"]] == ["DescribeCluster"]
    assert await cluster_id(controller.bootstrap, "another") == "the-double"
    assert (await http.get(f"/v1/stubs/{made['stubs'][0]['id']}")).json()["calls"] == 1
    nothing = await http.post("/v1/recordings/journal", json={"afterId": 1_000_000})
    assert nothing.json() == {"stubs": [], "leftOut": [], "loaded": False}


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"upstream": "nowhere"}, "#/upstream"),
        ({"upstream": "127.0.0.1:1,127.0.0.1:1"}, "#/upstream"),
        ({"listen": "localhost:0"}, "#/listen"),
        ({"listen": "127.0.0.1:70000"}, "#/listen"),
        ({"listen": "0.0.0.0:0"}, "#/listen"),
        ({"filters": ["Fetsch"]}, "#/filters"),
        ({"anyVersion": 1}, "#/anyVersion"),
        ({"upstreams": []}, "#/upstreams"),
    ],
    ids=json.dumps,
)
async def test_a_wrong_field_is_named(http: httpx.AsyncClient, wrong: dict[str, Any], pointer: str) -> None:
    answer = await http.post("/v1/recordings", json={"upstream": "127.0.0.1:1", **wrong})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


async def test_a_port_that_is_taken_is_a_conflict(http: httpx.AsyncClient, upstream: Controller) -> None:
    answer = await http.post("/v1/recordings", json={"upstream": "127.0.0.1:1", "listen": upstream.bootstrap})
    assert answer.status_code == 409
    assert f"cannot listen on {upstream.bootstrap}" in answer.json()["detail"]
    assert (await http.get("/v1/recordings")).json() == {"recordings": []}


async def test_there_are_only_so_many_recordings_at_once(http: httpx.AsyncClient) -> None:
    body = {"upstream": "127.0.0.1:1"}
    answers = [(await http.post("/v1/recordings", json=body)).status_code for _ in range(RECORDINGS_MAX + 1)]
    assert answers == [201] * RECORDINGS_MAX + [409]
    assert (await http.delete("/v1/recordings")).status_code == 204
    assert (await http.post("/v1/recordings", json=body)).status_code == 201


async def test_exchanges_above_the_limit_are_counted_and_forwarded(
    http: httpx.AsyncClient, upstream: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "EXCHANGES_MAX", 1)
    monkeypatch.setattr(recorder, "RECORDING_BYTES_MAX", 3_000)
    started = (await http.post("/v1/recordings", json={"upstream": upstream.bootstrap})).json()
    asked = [await cluster_id(started["bootstrap"]) for _ in range(10)]
    assert asked == ["the-upstream"] * 10
    assert "its limit of 3000 bytes" in (await http.get(f"/v1/recordings/{started['id']}")).json()["ended"]
    made = (await http.get(f"/v1/recordings/{started['id']}/stubs")).json()
    assert len(made["stubs"]) == 1
    assert {each["why"] for each in made["leftOut"]} == {"after the first 1 exchanges"}


@pytest.mark.parametrize("nowhere", ["127.0.0.1:1", "no..name:1"])
async def test_missing_upstream_is_reported(http: httpx.AsyncClient, nowhere: str) -> None:
    started = (await http.post("/v1/recordings", json={"upstream": nowhere})).json()
    with pytest.raises(OSError):  # noqa: PT011
        await cluster_id(started["bootstrap"])
    events = (await http.get(f"/v1/recordings/{started['id']}")).json()["events"]
    assert events[0].startswith(f"cannot connect to {nowhere}: ")
