"""Examples for docs/http-api.md and docs/any-language.md."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
from mockraft import Controller
from mockraft.wire.client import connect
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

ROOT = Path(__file__).parents[2]


def test_adds_and_verifies_a_stub() -> None:
    with (
        Controller.sync(brokers=1, admin_port=0) as controller,
        httpx.Client(base_url=controller.admin_url) as http,
    ):
        stub = {
            "match": {"api": "BrokerHeartbeat", "brokerId": 1},
            "trigger": {"once": True},
            "actions": [{"injectError": "NOT_CONTROLLER"}],
        }
        stub_id = http.post("/v1/stubs", json=stub).json()["id"]
        http.delete("/v1/requests")
        wanted = {"match": {"api": "BrokerHeartbeat", "brokerId": 1}, "atLeast": 1, "withinMs": 60_000}
        verified = http.post("/v1/requests/verify", json=wanted).json()
        assert verified["verified"], verified["report"]
        assert http.get(f"/v1/stubs/{stub_id}").json()["calls"] == 1


def test_adds_and_disables_a_fault() -> None:
    with (
        Controller.sync(brokers=1, admin_port=0) as controller,
        httpx.Client(base_url=controller.admin_url) as http,
    ):
        kinds = [each["name"] for each in http.get("/v1/faults/kinds").json()["kinds"]]
        assert "latency" in kinds
        slow = {"id": "slow", "kind": "latency", "params": {"latencyMs": 20}, "match": {"brokerId": 1}}
        http.post("/v1/faults", json=slow).raise_for_status()
        http.patch("/v1/faults/slow", json={"enabled": False}).raise_for_status()
        assert http.get("/v1/faults/slow").json()["enabled"] is False


async def _describe_cluster(bootstrap: str) -> Any:
    host, _, port = bootstrap.rpartition(":")
    connection = await connect(host, int(port), client_id="a-test")
    try:
        return await connection.send(DescribeClusterRequest(endpoint_type=2))
    finally:
        await connection.close()


def describe_cluster(bootstrap: str) -> Any:
    """The cluster as a controller reports it."""
    return asyncio.run(_describe_cluster(bootstrap))


def test_records_another_controller_as_stubs() -> None:
    with (
        Controller.sync() as upstream,
        Controller.sync(admin_port=0) as controller,
        httpx.Client(base_url=controller.admin_url) as http,
    ):
        recording = http.post("/v1/recordings", json={"upstream": upstream.bootstrap}).json()
        recorded = describe_cluster(recording["bootstrap"])
        stopped = http.post(f"/v1/recordings/{recording['id']}/stop", params={"load": "true"}).json()
        assert [each["match"]["api"] for each in stopped["stubs"]] == ["ApiVersions", "DescribeCluster"]
        assert describe_cluster(controller.bootstrap).cluster_id == recorded.cluster_id


def test_java_and_go_blocks_are_quoted_from_the_examples() -> None:
    page = (ROOT / "docs" / "any-language.md").read_text()
    for language, folder in (("java", "junit"), ("go", "go")):
        sources = " ".join(path.read_text() for path in (ROOT / "examples" / folder).rglob(f"*.{language}"))
        quoted = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        assert quoted != []
        for block in quoted:
            assert " ".join(block.split()) in " ".join(sources.split())
