import asyncio
import logging
import socket

import httpx
import pytest
from mockraft import Controller
from mockraft.server.admin.serving import AdminServer
from mockraft.server.admin.settings import AdminSettings
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest


async def test_free_port_is_chosen_and_reported(controller: Controller) -> None:
    server = await AdminServer.start(controller, AdminSettings())
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/v1/health")).json()["clusterId"] == controller.cluster_id
    await server.stop()
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await asyncio.open_connection("127.0.0.1", server.port)


async def test_a_port_that_is_taken_is_an_error(controller: Controller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await AdminServer.start(controller, AdminSettings(port=taken.getsockname()[1]))


async def test_streams_end_when_it_stops(controller: Controller) -> None:
    server = await AdminServer.start(controller, AdminSettings())
    async with httpx.AsyncClient(base_url=server.url) as http, http.stream("GET", "/v1/requests/stream") as stream:
        pieces = stream.aiter_text()
        assert await anext(pieces) == ": mockraft\n\n"
        await asyncio.gather(server.stop(), asyncio.wait_for(_to_end(pieces), 20))
    assert stream.is_closed


async def _to_end(pieces: object) -> None:
    async for _ in pieces:  # type: ignore[attr-defined]
        pass


@pytest.mark.parametrize(
    "sent",
    [b"\0" * 100, b"GET / HTTP/1.1\r\n\r\n", b"GET /v1/health HTTP/1.1\r\nHost: x\r\nContent-Length: 1e9\r\n\r\n"],
    ids=["no HTTP", "no host", "no length"],
)
async def test_bytes_that_are_no_request_are_answered_400(controller: Controller, sent: bytes) -> None:
    server = await AdminServer.start(controller, AdminSettings())
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
    writer.close()
    await server.stop()


async def test_unread_stream_ends_with_its_server(
    controller: Controller, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mockraft.server.admin.serving.GRACE_S", 0.1)
    monkeypatch.setattr("mockraft.server.admin.requests.compact", lambda tree: "x" * 16_000_000)
    await controller.ask(DescribeClusterRequest(endpoint_type=2))
    server = await AdminServer.start(controller, AdminSettings())
    loop = asyncio.get_running_loop()
    with socket.socket() as deaf:
        deaf.setblocking(False)
        await loop.sock_connect(deaf, ("127.0.0.1", server.port))
        await loop.sock_sendall(deaf, b"GET /v1/requests/stream?afterId=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await loop.sock_recv(deaf, 100)
        await server.stop()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_an_answer_that_is_not_made_in_time_ends_without_a_traceback(
    controller: Controller, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def never(work: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("mockraft.server.admin.serving.GRACE_S", 0.1)
    monkeypatch.setattr("mockraft.server.admin.json_bodies.in_turn", never)
    server = await AdminServer.start(controller, AdminSettings())
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /v1/brokers HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asked.wait()
    await server.stop()
    writer.close()
    assert [record.message for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("sent", [b"", b"GET /v1/health HTTP/1.1\r\nHost: loc"], ids=["nothing", "half of the headers"])
async def test_half_a_request_times_out(controller: Controller, sent: bytes) -> None:
    server = await AdminServer.start(controller, AdminSettings(request_timeout_s=0.05))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
    writer.close()
    await server.stop()


async def test_the_next_request_of_a_connection_times_out_too(controller: Controller) -> None:
    server = await AdminServer.start(controller, AdminSettings(request_timeout_s=1))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    writer.write(b"GET /v1/hea")
    assert b"HTTP/1.1 408 " in await reader.read()
    writer.close()
    await server.stop()


@pytest.mark.parametrize(
    "half",
    [b"GET /v1/health HTTP/1.1\r\n", b"POST /v1/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"],
    ids=["headers", "body"],
)
async def test_half_sent_requests_do_not_lock_out_others(controller: Controller, half: bytes) -> None:
    """The oldest of them give way, so that the newest connection is served; whole requests in progress stay."""
    server = await AdminServer.start(controller, AdminSettings(connections_max=20))
    async with httpx.AsyncClient(base_url=server.url) as http, http.stream("GET", "/v1/requests/stream") as stream:
        assert stream.status_code == 200
        halves = []
        for _ in range(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(half)
            halves.append((reader, writer))
        assert await halves[0][0].read() == b""
        async with httpx.AsyncClient(base_url=server.url) as other:
            assert (await other.get("/v1/health")).status_code == 200
        assert await anext(stream.aiter_text()) == ": mockraft\n\n"
        for _, writer in halves:
            writer.close()
    await server.stop()


@pytest.mark.parametrize("path", ["/openapi.json", "/v1/requests/stream"], ids=["slow readers", "streams"])
async def test_those_who_read_nothing_do_not_lock_out_others(controller: Controller, path: str) -> None:
    """The oldest of them give way, too, where all connections have a request."""
    server = await AdminServer.start(controller, AdminSettings(connections_max=20))
    loop = asyncio.get_running_loop()
    deaf = [socket.socket() for _ in range(40)]
    for each in deaf:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        each.setblocking(False)
        await loop.sock_connect(each, ("127.0.0.1", server.port))
        await loop.sock_sendall(each, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert await loop.sock_recv(each, 8)
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/v1/health")).status_code == 200
        assert len((await http.get("/openapi.json")).json()["paths"]) > 40
    for each in deaf:
        each.close()
    await server.stop()


async def test_streams_have_a_limit(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockraft.server.admin.requests.STREAMS_MAX", 1)
    server = await AdminServer.start(controller, AdminSettings())
    async with httpx.AsyncClient(base_url=server.url) as http:
        async with http.stream("GET", "/v1/requests/stream") as stream:
            assert await anext(stream.aiter_text()) == ": mockraft\n\n"
            refused = await http.get("/v1/requests/stream")
            assert (refused.status_code, refused.json()["detail"][:22]) == (503, "1 streams are open: cl")
        async with asyncio.timeout(20):
            while True:
                async with http.stream("GET", "/v1/requests/stream") as again:
                    if again.status_code == 200:
                        break
    await server.stop()
