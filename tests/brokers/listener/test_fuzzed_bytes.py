"""Whatever bytes come: the listener answers or closes, and goes on serving others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.apis.api import ConnectionClosedError
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.listener import requests
from mockraft.wire import client
from mockraft.wire.connection import write_request
from mockraft.wire.messages.metadata_request import MetadataRequest

VALID = [write_request(api.request(), api.versions[1], 1, "fuzz") for api in APIS.values()]
frames = st.binary(max_size=200)
headed = st.builds(
    lambda key, version, rest: key.to_bytes(2) + version.to_bytes(2) + rest,
    st.sampled_from(sorted(APIS)),
    st.integers(0, 20),
    st.binary(max_size=120),
)


@st.composite
def damaged(draw: Any) -> bytes:
    """A whole request, cut short or with some of its bytes changed."""
    data = bytearray(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=1500, deadline=None)
@given(st.one_of(frames, headed, damaged().map(lambda data: data[4:])))
def test_a_frame_is_read_or_refused(frame: bytes) -> None:
    with suppress(ConnectionClosedError):
        assert requests.read(frame, APIS).api.api_key in APIS


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(frames, damaged(), headed.map(lambda data: len(data).to_bytes(4) + data)), max_size=8))
def test_a_listener_outlives_any_bytes(chunks: list[bytes]) -> None:
    async def work() -> int:
        async with (
            Controller() as controller,
            SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1) as broker,
        ):
            await broker.wait_until(BrokerState.RUNNING)
            host, port = broker.config.listeners[0].host, broker.config.listeners[0].port
            for chunk in chunks:
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(chunk)
                writer.write_eof()
                async with asyncio.timeout(30):
                    await reader.read()
                writer.close()
                await writer.wait_closed()
            connection = await client.connect(host, port)
            told = await connection.send(MetadataRequest(topics=[]))
            await connection.close()
            return len(told.brokers)

    assert asyncio.run(work()) == 1
