"""Answers that remain when nodes of a quorum, or all of them, are killed."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from mockraft import Quorum
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

Asking = Callable[..., httpx.AsyncClient]


async def test_health_of_a_killed_quorum_is_a_problem_and_journals_and_clock_remain(
    asking: Asking, tmp_path: Path
) -> None:
    async with Quorum(2) as quorum, asking(quorum.double) as http:
        await quorum.ask(ApiVersionsRequest(), client_id="before")
        now_ms = quorum.double.now_ms
        for node_id in quorum.node_ids:
            await quorum.kill(node_id)

        for path in ("/v1/health", "/v1/brokers", "/v1/quorum", "/v1/topics"):
            answer = await http.get(path)
            assert (path, answer.status_code) == (path, 503)
            assert answer.json()["detail"] == "no controller runs: every node of the quorum was killed"
        assert (await http.post("/v1/reset", json={"state": True})).status_code in (409, 503)
        assert (await http.get("/metrics")).status_code == 200
        assert (await http.get("/v1/settings")).json()["journalEnabled"] is True
        assert (await http.get("/v1/clock")).json()["nowMs"] >= now_ms
        assert [each.client_id for each in quorum.requests(client_id="before")] == ["before"]
        quorum.write_journal(tmp_path / "journal.pcapng")
        assert (tmp_path / "journal.pcapng").stat().st_size > 200


async def test_restarted_node_continues_its_journal(asking: Asking) -> None:
    async with Quorum(2) as quorum, asking(quorum.double) as http:
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


async def test_commands_and_state_report_a_stopped_quorum() -> None:
    async with Quorum(2) as quorum:
        for node_id in quorum.node_ids:
            await quorum.kill(node_id)
        with pytest.raises(RuntimeError, match="no controller runs"):
            quorum.state.brokers()
        with pytest.raises(RuntimeError, match="no controller runs"):
            quorum.double.restart()
