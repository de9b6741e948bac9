import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from mockraft import Controller
from mockraft.server.admin import guard
from mockraft.server.admin.settings import AdminSettings

Asking = Callable[..., httpx.AsyncClient]


PUBLIC = ("evil.example", "evil.example:8080", "127.0.0.1.nip.io", "ai.", "evil.local", "[::1].evil.com:80")


@pytest.mark.parametrize("host", PUBLIC)
async def test_a_name_that_anybody_may_point_here_is_refused(http: httpx.AsyncClient, host: str) -> None:
    assert (await http.get("/v1/health", headers={"host": host})).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8080", "[::1]:8080", "10.1.2.3", "mockraft:8080", "host.docker.internal"])
async def test_a_name_of_this_machine_or_its_network_is_served(http: httpx.AsyncClient, host: str) -> None:
    assert (await http.get("/v1/health", headers={"host": host})).status_code == 200


async def test_another_sites_script_may_not_write(http: httpx.AsyncClient) -> None:
    assert (await http.delete("/v1/requests", headers={"origin": "http://evil.example"})).status_code == 403
    assert (await http.delete("/v1/requests", headers={"origin": "null"})).status_code == 403
    assert (await http.delete("/v1/requests", headers={"origin": "http://127.0.0.1:8080"})).status_code == 204


async def test_configured_token_is_required(controller: Controller, asking: Asking) -> None:
    async with asking(controller, token="secret", host="0.0.0.0") as http:
        refused = await http.get("/v1/requests")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await http.get("/v1/requests", headers={"authorization": "Bearer wrong"})).status_code == 401
        assert (await http.get("/v1/requests", headers={"authorization": "Bearer secret"})).status_code == 200
        assert (await http.get("/v1/health")).status_code == 200
        named = {"authorization": "Bearer secret", "host": "mockraft.example"}
        assert (await http.get("/v1/requests", headers=named)).status_code == 200


def test_others_may_not_reach_it_without_a_token_unless_that_is_meant() -> None:
    with pytest.raises(ValueError, match="give a token"):
        AdminSettings(host="0.0.0.0")
    assert AdminSettings(host="0.0.0.0", insecure=True).token is None
    assert AdminSettings(host="::1").host == "::1"


async def test_a_body_that_is_too_long_is_refused(controller: Controller, asking: Asking) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 100

    async with asking(controller, body_bytes_max=1_000) as http:
        json_type = {"content-type": "application/json"}
        said = await http.patch("/v1/settings", content=b" " * 1_001, headers=json_type)
        unsaid = await http.patch("/v1/settings", content=endless(), headers=json_type)
    assert [said.status_code, unsaid.status_code] == [413, 413]
    assert said.headers["content-type"] == "application/problem+json"


async def test_a_body_that_does_not_come_is_not_waited_for(controller: Controller, asking: Asking) -> None:
    async def hanging() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with asking(controller, request_timeout_s=0.05) as http:
        answer = await http.patch("/v1/settings", content=hanging(), headers={"content-type": "application/json"})
    assert answer.status_code == 408


async def test_the_oldest_incomplete_body_gives_way_when_all_are_too_long(
    controller: Controller, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "ARRIVING_BYTES_MAX", 100)
    began = asyncio.Event()

    async def hanging() -> AsyncIterator[bytes]:
        yield b" " * 60
        began.set()
        await asyncio.Event().wait()

    async def complete() -> AsyncIterator[bytes]:
        yield b" " * 60
        yield b"{}"

    headers = {"content-type": "application/json"}
    async with asking(controller, request_timeout_s=60, state_bytes_max=4) as http:
        oldest = asyncio.ensure_future(http.patch("/v1/settings", content=hanging(), headers=headers))
        await began.wait()
        newest = await http.patch("/v1/settings", content=complete(), headers=headers)
        assert ((await oldest).status_code, newest.status_code) == (408, 200)


async def test_a_body_of_another_type_is_refused_by_its_name(http: httpx.AsyncClient) -> None:
    answer = await http.patch("/v1/settings", content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b"{",
        b'{"journalEntriesMax": NaN}',
        b'{"x": "\\ud800"}',
        b"[" * 100_000,
        b'{"journalEntriesMax": ' + b"9" * 5_000 + b"}",
    ],
    ids=["bad UTF-8", "cut off", "NaN", "half a character", "deep", "a huge number"],
)
async def test_body_that_is_not_json_is_refused(http: httpx.AsyncClient, body: bytes) -> None:
    answer = await http.patch("/v1/settings", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "#"


async def test_a_wrong_field_is_pointed_at(http: httpx.AsyncClient) -> None:
    unknown = (await http.patch("/v1/settings", json={"strickt": True})).json()
    assert (unknown["status"], unknown["errors"][0]["pointer"]) == (422, "#/strickt")
    assert "did you mean strict?" in unknown["detail"]
    misspelt = (await http.patch("/v1/stubs/x", json={"enable": False})).json()["detail"]
    assert misspelt == "#/enable: there is no such field; did you mean enabled? (1 more)"
    step = {"fault": {"kind": "resign"}, "durration": 1}
    nested = (await http.post("/v1/plan", json={"plan": [step]})).json()["errors"][0]
    assert nested == {"detail": "there is no such field; did you mean duration?", "pointer": "#/plan/0/durration"}
    wrong = (await http.patch("/v1/settings", json={"journalEntriesMax": "many"})).json()
    assert (wrong["title"], wrong["errors"][0]["pointer"]) == ("Unprocessable Content", "#/journalEntriesMax")
    query = (await http.get("/v1/requests", params={"limit": 0})).json()
    assert query["errors"][0]["parameter"] == "limit"


async def test_missing_path_is_a_problem_document(http: httpx.AsyncClient) -> None:
    answer = await http.get("/v1/broker")
    assert "there is no /v1/broker; did you mean /v1/brokers" in answer.json()["detail"]
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    refused = await http.post("/v1/health")
    assert (refused.status_code, refused.json()["detail"]) == (405, "Method Not Allowed: /v1/health has GET")


async def test_no_other_site_may_frame_the_page_under_any_of_its_names(http: httpx.AsyncClient) -> None:
    assert (await http.head("/")).status_code == 200
    policies = [(await http.get(path)).headers["content-security-policy"] for path in ("/", "/page/index.html")]
    assert all("frame-ancestors 'none'" in policy for policy in policies)
