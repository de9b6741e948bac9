import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest
from mockraft import Controller, Quorum
from mockraft.server.admin.requests import stream_requests
from mockraft.server.journal import Exchange

from ...waiting import until

Ask = Callable[..., Awaitable[None]]


async def listed(http: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await http.get("/v1/requests", params=query)
    assert answer.status_code == 200, answer.text
    requests: list[dict[str, Any]] = answer.json()["requests"]
    return requests


async def test_requests_are_listed_oldest_first_without_their_bodies(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    requests = await listed(http)
    assert [each["api"] for each in requests] == ["ApiVersions", "DescribeCluster"]
    assert "request" not in requests[0]
    assert requests[0]["servedBy"] == "controller"


async def test_bodies_are_included_on_request(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    *_, cluster = await listed(http, summary=False)
    assert cluster["request"]["endpointType"] == 2
    assert cluster["response"]["controllerId"] == 3000


async def test_requests_are_found_by_api_client_and_connection(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask("one")
    await ask("two")
    assert [each["clientId"] for each in await listed(http, api="describecluster")] == ["one", "two"]
    assert [each["api"] for each in await listed(http, clientId="two")] == ["ApiVersions", "DescribeCluster"]
    assert {each["clientId"] for each in await listed(http, connection=1)} == {"one"}


async def test_a_text_is_searched_in_the_bodies(http: httpx.AsyncClient, ask: Ask, controller: Controller) -> None:
    await ask()
    assert [each["api"] for each in await listed(http, q=controller.cluster_id)] == ["DescribeCluster"]


async def test_since_returns_only_later_exchanges(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    then = (await http.get("/v1/requests")).json()["next"]
    await ask("later")
    assert {each["clientId"] for each in await listed(http, since=then)} == {"later"}
    assert [each["api"] for each in await listed(http, since=then, limit=1)] == ["ApiVersions"]
    assert [each["api"] for each in await listed(http, limit=1)] == ["DescribeCluster"]


async def test_current_etag_returns_not_modified(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    etag = (await http.get("/v1/requests")).headers["etag"]
    again = await http.get("/v1/requests", headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")
    await ask()
    assert (await http.get("/v1/requests", headers={"if-none-match": etag})).status_code == 200


async def test_one_request_is_given_by_its_id(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    number = (await listed(http))[0]["id"]
    assert (await http.get(f"/v1/requests/{number}")).json()["request"]["clientSoftwareName"] == "apache-kafka-java"
    missing = await http.get("/v1/requests/999999")
    assert missing.status_code == 404
    assert missing.json()["errors"][0]["parameter"] == "requestId"


async def test_requests_are_forgotten_on_request(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    assert (await http.delete("/v1/requests")).status_code == 204
    assert await listed(http) == []


async def test_the_journal_is_given_as_json_lines(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    lines = [json.loads(line) for line in (await http.get("/v1/requests.jsonl")).text.splitlines()]
    assert [line["api"] for line in lines if "api" in line] == ["ApiVersions", "DescribeCluster"]


async def test_the_journal_is_given_as_a_capture(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    answer = await http.get("/v1/requests.pcapng")
    assert answer.headers["content-type"] == "application/vnd.tcpdump.pcap"
    assert answer.content[:4] == bytes.fromhex("0a0d0d0a")
    assert b"mockraft" in answer.content


async def test_requests_are_streamed_as_they_come(controller: Controller, ask: Ask) -> None:
    stopping = asyncio.Event()
    stream = await stream_requests(controller.double, stopping, None, None, None)
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
    async with Quorum(3) as quorum, asking(quorum.double) as http:
        everything = await listed(http, limit=20_000)
        assert [each["id"] for each in everything] == sorted({each["id"] for each in everything})
        assert {each["node"] for each in await listed(http, node=quorum.active)} == {quorum.active}
        unknown = await http.get("/v1/requests", params={"node": 17})
        assert (unknown.status_code, unknown.json()["errors"][0]["parameter"]) == (404, "node")


async def test_a_list_that_another_run_gave_is_not_taken_for_this_one(
    http: httpx.AsyncClient, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask()
    tag = (await http.get("/v1/requests")).headers["etag"]
    assert (await http.get("/v1/requests", headers={"if-none-match": tag})).status_code == 304
    monkeypatch.setattr("mockraft.server.admin.requests.RUN", "other")
    assert (await http.get("/v1/requests", headers={"if-none-match": tag})).status_code == 200


def _is_long(found: list[int], length: int) -> bool:
    return len(found) >= length


async def test_stream_checks_unwanted_exchanges_once(controller: Controller, ask: Ask) -> None:
    looked: list[int] = []

    def wanted(exchange: Exchange) -> bool:
        looked.append(exchange.id)
        return False

    stopping = asyncio.Event()
    stream = await stream_requests(controller.double, stopping, None, wanted, None)
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
