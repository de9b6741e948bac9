"""The channel to the controller: reopened after NOT_CONTROLLER and disconnects, given up at the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mockraft.brokers.channel import ControllerChannel, NotSentError
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.shell.shell import Shell
from mockraft.brokers.shell.socket_links import SocketLinks
from mockraft.wire import api_keys, error_codes
from mockraft.wire.client import UnsupportedVersionError
from mockraft.wire.connection import FrameReader, Request, parse_request, write_response
from mockraft.wire.errors import WireError
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

HEARTBEAT = BrokerHeartbeatRequest(broker_id=1)


def answered(error_code: int = 0) -> Callable[[Request], bytes]:
    def reply(request: Request) -> bytes:
        body = BrokerHeartbeatResponse(error_code=error_code).write(request.api_version)
        return write_response(body, request.correlation_id, 1)

    return reply


def hang_up(request: Request) -> bytes:
    raise ConnectionAbortedError


@asynccontextmanager
async def controller(*replies: Callable[[Request], bytes]) -> AsyncIterator[tuple[tuple[str, int], list[int]]]:
    """A controller that gives these replies to heartbeats, one after the other and the last for ever.

    Gives its endpoint and a list with the connection number of every heartbeat.
    """
    heartbeats: list[int] = []
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number, frames = connections, FrameReader()
        while data := await reader.read(65536):
            for frame in frames.receive_data(data):
                request = parse_request(frame)
                if request.api_key == api_keys.API_VERSIONS:
                    offered = [ApiVersion(api_key=api_keys.BROKER_HEARTBEAT, min_version=0, max_version=2)]
                    body = ApiVersionsResponse(api_keys=offered).write(request.api_version)
                    writer.write(write_response(body, request.correlation_id, 0))
                    continue
                heartbeats.append(number)
                try:
                    writer.write(replies[min(len(heartbeats), len(replies)) - 1](request))
                except ConnectionAbortedError:
                    writer.close()
                    return
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2], heartbeats
    finally:
        server.close()


class Channel:
    """A channel over sockets whose requests can be awaited."""

    def __init__(self, find: Callable[[], Any], retry_timeout_ms: int) -> None:
        self.kernel = Kernel(self._failed)
        self.shell = Shell(self.kernel, SocketLinks)
        self.channel = ControllerChannel(self.kernel, "heartbeat", "1", find, retry_timeout_ms)

    async def send(self, request: Any = HEARTBEAT) -> Any:
        answer = asyncio.get_running_loop().create_future()
        self.channel.send(lambda _: request, answer.set_result, answer.set_exception)
        return await answer

    def _failed(self, error: Exception) -> None:
        raise error


@asynccontextmanager
async def channel_to(find: Callable[[], Any], retry_timeout_ms: int = 5000) -> AsyncIterator[Channel]:
    channel = Channel(find, retry_timeout_ms)
    try:
        yield channel
    finally:
        await channel.shell.close()


async def test_one_connection_carries_every_request() -> None:
    async with controller(answered()) as (endpoint, heartbeats), channel_to(lambda: endpoint) as channel:
        for _ in range(3):
            await channel.send()
        assert heartbeats == [1, 1, 1]


@pytest.mark.parametrize("trouble", [answered(error_codes.NOT_CONTROLLER), hang_up], ids=["NOT_CONTROLLER", "hang up"])
async def test_the_request_is_sent_again_on_a_new_connection(trouble: Callable[[Request], bytes]) -> None:
    replies = (trouble, trouble, answered())
    async with controller(*replies) as (endpoint, heartbeats), channel_to(lambda: endpoint) as channel:
        response = await channel.send()
        assert response.error_code == 0
        assert heartbeats == [1, 2, 3]


async def test_follows_the_controller_to_where_it_moved() -> None:
    async with (
        controller(answered(error_codes.NOT_CONTROLLER)) as (old, asked_old),
        controller(answered()) as (new, asked_new),
    ):
        async with channel_to(lambda: new if asked_old else old) as channel:
            await channel.send()
        assert (len(asked_old), len(asked_new)) == (1, 1)


async def test_waits_until_a_controller_is_active() -> None:
    known: list[tuple[str, int]] = []
    async with controller(answered()) as (endpoint, _), channel_to(lambda: known[0] if known else None) as channel:
        sending = asyncio.ensure_future(channel.send())
        await asyncio.sleep(0)
        assert not sending.done()
        known.append(endpoint)
        channel.channel.controller_moved()
        assert (await sending).error_code == 0


async def test_other_errors_come_out_as_they_are() -> None:
    async with (
        controller(answered(error_codes.STALE_BROKER_EPOCH)) as (endpoint, heartbeats),
        channel_to(lambda: endpoint) as channel,
    ):
        response = await channel.send()
        assert response.error_code == error_codes.STALE_BROKER_EPOCH
        assert heartbeats == [1]


async def test_silent_controller_is_left_for_a_new_one() -> None:
    async with controller(lambda _: b"") as (silent, asked), controller(answered()) as (new, asked_new):
        async with channel_to(lambda: new if asked else silent, retry_timeout_ms=120) as channel:
            with pytest.raises(NotSentError):
                await channel.send()
            await channel.send()
        assert (asked, asked_new) == ([1], [1])


@pytest.mark.parametrize("known", [True, False], ids=["nobody answers", "nobody known"])
async def test_gives_up_when_the_time_is_over(known: bool) -> None:
    async with controller(answered()) as (endpoint, _):
        pass
    async with channel_to(lambda: endpoint if known else None, retry_timeout_ms=120) as channel:
        with pytest.raises(NotSentError, match="within 120 ms"):
            await channel.send()


async def test_unsupported_api_is_reported_at_once() -> None:
    async with controller(answered()) as (endpoint, _), channel_to(lambda: endpoint) as channel:
        with pytest.raises(UnsupportedVersionError):
            await channel.send(AllocateProducerIdsRequest())


async def test_undecodable_response_is_reported_and_closes_the_connection() -> None:
    replies = (lambda _: b"\0\0\0\x04nope", answered())
    async with controller(*replies) as (endpoint, heartbeats), channel_to(lambda: endpoint) as channel:
        with pytest.raises(WireError):
            await channel.send()
        await channel.send()
        assert heartbeats == [1, 2]
