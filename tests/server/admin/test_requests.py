"""The journal over HTTP: requests and their verification."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest
from mockraft import Controller, Quorum
from mockraft.kafka_api.clock import VirtualClock
from mockraft.kafka_api.journal import ClosedConnection, Exchange, Failure, Journal, verify
from mockraft.server.admin import requests, verification
from mockraft.server.admin.app import create_app
from mockraft.server.admin.requests import Selection, stream_requests
from mockraft.server.stubs.match import Match
from mockraft.wire import client

from ...waiting import until

Ask = Callable[..., Awaitable[None]]


async def listed(http: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await http.get("/v1/requests", params=query)
    assert answer.status_code == 200, answer.text
    requests: list[dict[str, Any]] = answer.json()["requests"]
    return requests


async def test_requests_are_listed_oldest_first_with_their_bodies_on_request(
    http: httpx.AsyncClient, ask: Ask, controller: Controller
) -> None:
    await ask()
    requests = await listed(http)
    assert [each["api"] for each in requests] == ["ApiVersions", "DescribeCluster"]
    assert "request" not in requests[0]
    assert requests[0]["servedBy"] == "controller"
    *_, cluster = await listed(http, summary=False)
    assert cluster["request"]["endpointType"] == 2
    assert cluster["response"]["controllerId"] == 3000
    assert [each["api"] for each in await listed(http, q=controller.cluster_id)] == ["DescribeCluster"]


async def test_requests_are_found_by_api_client_and_connection(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask("one")
    await ask("two")
    assert [each["clientId"] for each in await listed(http, api="describecluster")] == ["one", "two"]
    assert [each["api"] for each in await listed(http, clientId="two")] == ["ApiVersions", "DescribeCluster"]
    assert {each["clientId"] for each in await listed(http, connection=1)} == {"one"}


@pytest.mark.parametrize("name", ["afterId", "since"])
async def test_id_selects_later_requests_in_queries_and_bodies(http: httpx.AsyncClient, ask: Ask, name: str) -> None:
    await ask()
    then = (await http.get("/v1/requests")).json()["next"]
    await ask("later")
    assert {each["clientId"] for each in await listed(http, **{name: then})} == {"later"}
    assert (await http.post("/v1/requests/count", json={name: then})).json() == {"count": 2}
    assert [each["api"] for each in await listed(http, **{name: then}, limit=1)] == ["ApiVersions"]
    assert [each["api"] for each in await listed(http, limit=1)] == ["DescribeCluster"]


def _has_closed(journal: Journal, number: int) -> bool:
    return len(list(journal.closed())) == number


async def test_age_selects_requests_connections_and_the_start_of_a_stream(
    asking: Callable[..., httpx.AsyncClient],
) -> None:
    async with Controller(clock=VirtualClock(), brokers=0) as controller, asking(controller) as http:
        (journal,) = controller.journals.values()
        for number, name in enumerate(["old", "new"], 1):
            controller.advance(10_000)
            await (await client.connect(controller.host, controller.port, client_id=name)).close()
            await until(partial(_has_closed, journal, number))
        assert [each["clientId"] for each in await listed(http, maxAgeMs=9_999)] == ["new"]
        assert [each["clientId"] for each in await listed(http, maxAgeMs=10_000)] == ["old", "new"]
        closed = await http.get("/v1/requests/closed", params={"maxAgeMs": 9_999})
        assert [each["connection"] for each in closed.json()["closed"]] == [2]

        stopping = asyncio.Event()
        recent = Selection(controller, None, Match(client_id="new"), None, controller.now_ms - 9_999)
        pieces = aiter((await stream_requests(recent, stopping, set())).body_iterator)
        await anext(pieces)
        assert '"clientId":"new"' in str(await anext(pieces))
        stopping.set()


async def test_current_etag_of_this_run_returns_not_modified(
    http: httpx.AsyncClient, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answered(tag: str) -> tuple[int, bool]:
        answer = await http.get("/v1/requests", headers={"if-none-match": tag})
        return answer.status_code, bool(answer.content)

    await ask()
    tag = (await http.get("/v1/requests")).headers["etag"]
    assert await answered(tag) == (304, False)
    with monkeypatch.context() as patch:
        patch.setattr("mockraft.server.admin.requests.RUN", "other")
        assert await answered(tag) == (200, True)
    assert await answered(tag) == (304, False)
    await ask()
    assert await answered(tag) == (200, True)


async def test_one_request_is_given_by_its_id(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    number = (await listed(http))[0]["id"]
    assert (await http.get(f"/v1/requests/{number}")).json()["request"]["clientSoftwareName"] == "apache-kafka-java"
    missing = await http.get("/v1/requests/999999")
    assert missing.status_code == 404
    assert missing.json()["errors"][0]["parameter"] == "requestId"


async def test_closed_connections_are_the_newest_wanted_ones(http: httpx.AsyncClient, controller: Controller) -> None:
    journal = controller.journals[controller.node_id]
    for number in range(1, 4):
        journal.add_closed(ClosedConnection(number, f"10.0.0.{number}:99", 1, 2, "login", refused=True), "login")

    async def connections(**query: str | int) -> list[int]:
        found = (await http.get("/v1/requests/closed", params=query)).json()
        assert found["dropped"] == 0
        return [each["connection"] for each in found["closed"]]

    assert await connections() == [1, 2, 3]
    assert await connections(limit=2) == [2, 3]
    assert await connections(connection=2) == [2]
    assert await connections(q="10.0.0.1:99") == [1]
    assert (await http.get("/v1/requests/closed", params={"node": 17})).status_code == 404


async def test_an_entry_of_any_kind_is_given_by_its_id(
    http: httpx.AsyncClient, controller: Controller, ask: Ask
) -> None:
    await ask()
    journal = controller.journals[controller.node_id]
    journal.add_closed(ClosedConnection(7, "10.0.0.7:99", 1, 2, "login", refused=True), "login")
    journal.add_failure(Failure(5, "Traceback"))
    controller.is_judged = True
    last = journal.mark()
    request_id = (await listed(http))[0]["id"]
    assert (await http.get(f"/v1/entries/{request_id}")).json() == (await http.get(f"/v1/requests/{request_id}")).json()
    assert (await http.get(f"/v1/entries/{last - 1}")).json()["reason"] == "login"
    assert (await http.get(f"/v1/entries/{last}")).json()["failure"] == "Traceback"
    missing = await http.get(f"/v1/entries/{2**40}")
    assert (missing.status_code, missing.json()["errors"][0]["parameter"]) == (404, "entryId")


async def test_the_journal_is_given_as_json_lines_and_as_a_capture_and_forgotten(
    http: httpx.AsyncClient, ask: Ask
) -> None:
    await ask()
    lines = [json.loads(line) for line in (await http.get("/v1/requests.jsonl")).text.splitlines()]
    assert [line["api"] for line in lines if "api" in line] == ["ApiVersions", "DescribeCluster"]
    answer = await http.get("/v1/requests.pcapng")
    assert answer.headers["content-type"] == "application/vnd.tcpdump.pcap"
    assert answer.content[:4] == bytes.fromhex("0a0d0d0a")
    assert b"mockraft" in answer.content
    assert (await http.delete("/v1/requests")).status_code == 204
    assert await listed(http) == []


async def test_only_the_chosen_requests_are_forgotten_and_an_unknown_choice_is_refused(
    http: httpx.AsyncClient, ask: Ask
) -> None:
    await ask("one")
    await ask("two")
    assert (await http.delete("/v1/requests", params={"clientId": "one", "api": "DescribeCluster"})).status_code == 204
    left = [(each["clientId"], each["api"]) for each in await listed(http)]
    assert left == [("one", "ApiVersions"), ("two", "ApiVersions"), ("two", "DescribeCluster")]
    for method, query, body, said in (
        ("DELETE", {}, {"match": {"clientId": "one"}}, "use its query parameters"),
        ("DELETE", {"client_id": "one"}, None, "did you mean clientId"),
        ("GET", {"apis": "ApiVersions"}, None, "did you mean api"),
        ("GET", {"api": "DescribeClusters"}, None, "did you mean DescribeCluster"),
    ):
        refused = await http.request(method, "/v1/requests", params=query, json=body)
        assert (refused.status_code, said in refused.json()["detail"]) == (422, True), refused.text
    assert len(await listed(http)) == 3


async def test_requests_are_streamed_as_they_come(controller: Controller, ask: Ask) -> None:
    stopping = asyncio.Event()
    stream = await stream_requests(Selection(controller, None, None, None), stopping, set())
    pieces = aiter(stream.body_iterator)
    assert await anext(pieces) == ": mockraft\n\n"
    await ask()
    event = {
        key: value for key, _, value in (line.partition(": ") for line in str(await anext(pieces)).splitlines()) if key
    }
    assert event["event"] == "requests"
    assert json.loads(event["data"])["requests"][0]["api"] == "ApiVersions"
    stopping.set()
    assert [str(each) for each in [piece async for piece in pieces] if "event" in str(each)][1:] == []


async def test_exchanges_of_quorum_nodes_are_distinguished(asking: Callable[..., httpx.AsyncClient]) -> None:
    async with Quorum(3) as quorum, asking(quorum) as http:
        everything = await listed(http, limit=20_000)
        assert [each["id"] for each in everything] == sorted({each["id"] for each in everything})
        assert {each["node"] for each in await listed(http, node=quorum.active)} == {quorum.active}
        unknown = await http.get("/v1/requests", params={"node": 17})
        assert (unknown.status_code, unknown.json()["errors"][0]["parameter"]) == (404, "node")


def _is_long(found: list[int], length: int) -> bool:
    return len(found) >= length


async def test_stream_checks_unwanted_exchanges_once(controller: Controller, ask: Ask) -> None:
    looked: list[int] = []

    def wanted(exchange: Exchange) -> bool:
        looked.append(exchange.id)
        return False

    stopping = asyncio.Event()
    stream = await stream_requests(Selection(controller, None, wanted, None), stopping, set())
    pieces = aiter(stream.body_iterator)
    await anext(pieces)
    reading = asyncio.ensure_future(anext(pieces))
    for times in (1, 2, 3):
        await ask()
        await until(partial(_is_long, looked, times))
    stopping.set()
    with pytest.raises(StopAsyncIteration):
        await reading
    assert looked
    assert len(looked) == len(set(looked))


CLUSTER = {"api": "DescribeCluster"}


async def test_requests_are_counted_and_found_by_a_match(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask("one")
    await ask("two")
    by_field = {"match": {"api": "DescribeCluster", "where": {"endpointType": 2}, "clientId": "two"}}
    assert (await http.post("/v1/requests/count", json={})).json() == {"count": 4}
    assert (await http.post("/v1/requests/count", json=by_field)).json() == {"count": 1}
    found = (await http.post("/v1/requests/find", json={**by_field, "summary": False})).json()["requests"]
    assert [each["request"]["endpointType"] for each in found] == [2]


async def test_other_requests_are_answered_while_a_match_is_counted(
    controller: Controller, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MATCH_BATCH", 2)
    turns: list[None] = []

    async def next_turn() -> None:
        turns.append(None)

    monkeypatch.setattr(requests, "next_turn", next_turn)
    await ask("one")
    await ask("two")
    found = await requests.held_matching(controller, Match.from_json(CLUSTER), 0)
    assert [each.client_id for each in found] == ["one", "two"]
    assert len(turns) == 2


async def test_a_match_or_numbers_that_make_no_sense_are_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/requests/count", json={"match": {"api": "DescribeCluster", "where": {"endpoint": 2}}})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/match/where/endpoint")
    assert (await http.post("/v1/requests/verify", json={"count": 1, "atLeast": 2})).status_code == 422


async def test_a_failed_verification_lists_near_misses(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    assert (await http.post("/v1/requests/verify", json={"match": CLUSTER, "count": 1})).json()["verified"] is True
    body = {"match": {**CLUSTER, "where": {"endpointType": 1}}}
    failed = (await http.post("/v1/requests/verify", json=body)).json()
    assert (failed["verified"], failed["count"]) == (False, 0)
    assert "endpointType: wanted 1, there was 2" in failed["report"]
    assert (await http.post("/v1/requests/verify", json={"match": CLUSTER, "atMost": 0})).json()["verified"] is False


async def test_verification_waits_for_late_requests(http: httpx.AsyncClient, ask: Ask) -> None:
    waiting = asyncio.create_task(http.post("/v1/requests/verify", json={"match": CLUSTER, "withinMs": 20_000}))
    await asyncio.sleep(0)
    await ask()
    assert (await waiting).json()["verified"] is True
    late = await http.post("/v1/requests/verify", json={"match": CLUSTER, "count": 2, "withinMs": 10})
    assert late.json()["verified"] is False


async def test_requests_are_answered_while_one_is_verified(
    http: httpx.AsyncClient, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, answered = threading.Event(), threading.Event()

    def slow(*arguments: Any, **options: Any) -> list[Exchange]:
        begun.set()
        assert answered.wait(20)
        return verify(*arguments, **options)

    monkeypatch.setattr(verification, "verify", slow)
    verifying = asyncio.create_task(http.post("/v1/requests/verify", json={"match": CLUSTER}))
    await until(begun.is_set)
    await ask()
    answered.set()
    # The request came after those that are verified.
    assert (await verifying).json()["verified"] is False


async def test_a_waiting_verification_ends_when_the_server_stops(controller: Controller) -> None:
    stopping = asyncio.Event()
    app = create_app(controller, stopping=stopping)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8080") as http:
        body = {"match": CLUSTER, "withinMs": 600_000}
        waiting = asyncio.create_task(http.post("/v1/requests/verify", json=body))
        asyncio.get_running_loop().call_later(0.01, stopping.set)
        assert (await asyncio.wait_for(waiting, 20)).json()["verified"] is False


async def test_unexpected_requests_are_reported_with_the_nearest_stubs(http: httpx.AsyncClient, ask: Ask) -> None:
    await http.patch("/v1/settings", json={"strict": True})
    await http.post("/v1/stubs", json={"id": "other", "match": {"api": "DescribeCluster", "clientId": "other"}})
    await ask()
    unmatched = (await http.get("/v1/requests/unmatched")).json()["requests"]
    assert [each["api"] for each in unmatched] == ["DescribeCluster"]
    misses = (await http.get(f"/v1/requests/{unmatched[0]['id']}/near-misses")).json()["nearMisses"]
    assert [(miss["stub"], [c["field"] for c in miss["conditions"] if not c["held"]]) for miss in misses] == [
        ("other", ["clientId"])
    ]
    assert len((await http.get("/v1/requests/unmatched/near-misses")).json()["nearMisses"]) == 1
    assert (await http.get("/v1/requests/999999/near-misses")).status_code == 404
    await http.patch("/v1/settings", json={"strict": False})
