import asyncio
from collections.abc import Awaitable, Callable

import httpx

Ask = Callable[..., Awaitable[None]]
CLUSTER = {"api": "DescribeCluster"}


async def test_requests_are_counted_and_found_by_a_match(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask("one")
    await ask("two")
    by_field = {"match": {"api": "DescribeCluster", "where": {"endpointType": 2}, "clientId": "two"}}
    assert (await http.post("/v1/requests/count", json={})).json() == {"count": 4}
    assert (await http.post("/v1/requests/count", json=by_field)).json() == {"count": 1}
    found = (await http.post("/v1/requests/find", json={**by_field, "summary": False})).json()["requests"]
    assert [each["request"]["endpointType"] for each in found] == [2]


async def test_a_match_that_makes_no_sense_is_pointed_at(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/requests/count", json={"match": {"api": "DescribeCluster", "where": {"endpoint": 2}}})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/match/where/endpoint")


async def test_a_failed_verification_lists_near_misses(http: httpx.AsyncClient, ask: Ask) -> None:
    await ask()
    assert (await http.post("/v1/requests/verify", json={"match": CLUSTER, "count": 1})).json()["verified"] is True
    body = {"match": {**CLUSTER, "where": {"endpointType": 1}}}
    failed = (await http.post("/v1/requests/verify", json=body)).json()
    assert (failed["verified"], failed["count"]) == (False, 0)
    assert "endpointType: wanted 1, there was 2" in failed["report"]
    assert (await http.post("/v1/requests/verify", json={"match": CLUSTER, "atMost": 0})).json()["verified"] is False


async def test_numbers_that_contradict_each_other_are_refused(http: httpx.AsyncClient) -> None:
    assert (await http.post("/v1/requests/verify", json={"count": 1, "atLeast": 2})).status_code == 422


async def test_verification_waits_for_late_requests(http: httpx.AsyncClient, ask: Ask) -> None:
    waiting = asyncio.create_task(http.post("/v1/requests/verify", json={"match": CLUSTER, "withinMs": 20_000}))
    await asyncio.sleep(0)
    await ask()
    assert (await waiting).json()["verified"] is True
    late = await http.post("/v1/requests/verify", json={"match": CLUSTER, "count": 2, "withinMs": 10})
    assert late.json()["verified"] is False


async def test_unexpected_requests_are_reported_with_the_nearest_stubs(http: httpx.AsyncClient, ask: Ask) -> None:
    await http.patch("/v1/settings", json={"strict": True})
    await http.post("/v1/stubs", json={"id": "other", "match": {"api": "DescribeCluster", "clientId": "other"}})
    await ask()
    unmatched = (await http.get("/v1/requests/unmatched")).json()["requests"]
    assert [each["api"] for each in unmatched] == ["ApiVersions", "DescribeCluster"]
    misses = (await http.get(f"/v1/requests/{unmatched[1]['id']}/near-misses")).json()["nearMisses"]
    assert [(miss["stub"], [c["field"] for c in miss["conditions"] if not c["held"]]) for miss in misses] == [
        ("other", ["clientId"])
    ]
    assert len((await http.get("/v1/requests/unmatched/near-misses")).json()["nearMisses"]) == 2
    assert (await http.get("/v1/requests/999999/near-misses")).status_code == 404
