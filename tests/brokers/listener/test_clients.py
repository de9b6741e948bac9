"""The clients of a broker without sockets: order, parked requests, limits, bad bytes."""

from __future__ import annotations

import dataclasses
import random
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from mockraft.brokers.apis.api import BrokerView, Parked
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.config import draw_config
from mockraft.brokers.coordinators.group_coordinator import Groups
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.listener.clients import Clients, Limits
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.effects import AwaitSent, Close, PauseReading, ResumeReading, Send
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import FrameReader, read_response_body, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockraft.wire.messages.metadata_response import MetadataResponse
from mockraft.wire.messages.push_telemetry_request import PushTelemetryRequest
from mockraft.wire.messages.vote_request import VoteRequest

UNLIMITED = Limits()


class Bench:
    """Clients with one connection, number 1, and the bytes that it was sent."""

    def __init__(self, limits: Limits = UNLIMITED) -> None:
        self.wakes = 0
        self.delay_ms = 0
        self.groups = Groups({})
        broker = SimpleNamespace(
            apis=APIS,
            config=draw_config(1, "a-cluster", (("127.0.0.1", 9),), random.Random(1)),
            image=ClusterImage(),
            observer=SimpleNamespace(applied_offset=41, voters={}),
            forwarding=SimpleNamespace(api_versions=None),
            replicas=SimpleNamespace(disk_delay_ms=lambda _keys: self.delay_ms),
            groups=SimpleNamespace(groups=self.groups),
            shares=Mock(next_tick_ms=lambda: NEVER_MS),
            rng=random.Random(1),
        )
        self.clients = Clients(cast(BrokerView, broker), limits, self._wake)
        self.effects = self.clients.connected(1, "127.0.0.1", 0, "PLAINTEXT")
        self.clients.tick(0)

    def _wake(self) -> None:
        self.wakes += 1

    def receive(self, data: bytes, now_ms: int = 0) -> list[Any]:
        self.effects = self.clients.step(1, data, now_ms)
        return list(self.effects)

    def tick(self, now_ms: int) -> list[Any]:
        self.effects = self.clients.tick(now_ms)
        return list(self.effects)

    @property
    def answered(self) -> list[int]:
        """Correlation ids of the responses among the last effects."""
        data = b"".join(effect.data for effect in self.effects if isinstance(effect, Send))
        return [int.from_bytes(frame[:4]) for frame in FrameReader().receive_data(data)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def metadata(correlation_id: int, version: int = 13) -> bytes:
    return write_request(MetadataRequest(topics=[]), version, correlation_id, "test")


def handle_metadata(monkeypatch: pytest.MonkeyPatch, handle: Any, **changes: Any) -> None:
    key = api_keys.METADATA
    monkeypatch.setitem(APIS, key, dataclasses.replace(APIS[key], handle=handle, **changes))


def test_answers_an_unknown_version_of_api_versions_in_version_0(bench: Bench) -> None:
    data = bytearray(
        write_request(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4, 9, "t")
    )
    data[6:8] = (99).to_bytes(2)
    (sent,) = bench.receive(bytes(data))
    response = read_response_body(sent.data, 8, 18, 0)
    assert (response.error_code, [(each.api_key, each.max_version) for each in response.api_keys]) == (
        error_codes.UNSUPPORTED_VERSION,
        [(18, ApiVersionsRequest.max_version)],
    )
    bench.receive(metadata(10))
    assert bench.answered == [10]


TRUNCATED = metadata(1)[4:-2]
BAD = {
    "an API that only controllers have": (write_request(VoteRequest(), 2, 1, "t"), "is not served on this listener"),
    "an API that is not served": (write_request(PushTelemetryRequest(), 0, 1, "t"), "is not served on this listener"),
    "a body that ends early": (len(TRUNCATED).to_bytes(4) + TRUNCATED, "end too soon"),
}


@pytest.mark.parametrize("case", BAD)
def test_closes_the_connection_for_bad_bytes_after_the_requests_before_them(bench: Bench, case: str) -> None:
    data, reason = BAD[case]
    *_, closed = bench.receive(metadata(1) + metadata(2) + data)
    assert bench.answered == [1, 2]
    assert closed == Close(1, bench.clients.closings[-1])
    assert reason in closed.reason
    assert bench.receive(metadata(3)) == []


def test_closes_one_connection_too_many() -> None:
    bench = Bench(Limits(max_connections=1))
    (closed,) = bench.clients.connected(2, "127.0.0.1", 0)
    assert closed == Close(2, "refused: 1 connections are open, connections_max=1")
    bench.clients.disconnected(1, "the peer closed", 0)
    assert bench.clients.connected(3, "127.0.0.1", 0) == []


def test_takes_a_request_as_large_as_the_limit_and_none_larger() -> None:
    size = len(metadata(1)) - 4
    bench = Bench(Limits(socket_request_max_bytes=size))
    bench.receive(metadata(1))
    assert bench.answered == [1]
    (closed,) = bench.receive((size + 1).to_bytes(4))
    assert isinstance(closed, Close)


@pytest.mark.parametrize("is_parked", [False, True])
def test_answers_an_unknown_error_when_a_handler_breaks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_parked: bool
) -> None:
    def broken(*_arguments: Any) -> MetadataResponse:
        raise ZeroDivisionError

    handle_metadata(monkeypatch, (lambda _request, _ctx: Parked(5, broken)) if is_parked else broken)
    effects = bench.receive(write_request(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 13, 1, "test"))
    (sent,) = effects or bench.tick(5)
    (topic,) = read_response_body(sent.data, 9, 3, 13).topics
    assert topic.error_code == error_codes.UNKNOWN_SERVER_ERROR


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Metadata requests are parked for 100 ms, or until the list has an entry."""
    entries: list[bool] = []

    def handle(_request: MetadataRequest, ctx: Any) -> Parked[MetadataResponse]:
        return Parked(ctx.now_ms + 100, lambda _now_ms, expired: MetadataResponse() if expired or entries else None)

    handle_metadata(monkeypatch, handle)
    return entries


def test_answers_a_parked_request_after_a_change_and_then_the_next_one(bench: Bench, ready: list[bool]) -> None:
    assert bench.receive(metadata(1) + metadata(2)) == [PauseReading(1)]
    bench.clients.changed()
    bench.clients.changed()
    assert (bench.wakes, bench.clients.next_tick_ms(0)) == (1, 0)
    assert bench.tick(10) == []
    ready.append(True)
    assert bench.clients.next_tick_ms(0) == 100
    bench.clients.changed()
    bench.tick(20)
    assert bench.answered == [1]
    assert AwaitSent(1) in bench.effects
    bench.effects = bench.clients.sent(1, 20)
    assert bench.answered == [2]
    assert ResumeReading(1) in bench.effects


def test_a_slow_disk_delays_a_request(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    times = []

    def handle(_request: MetadataRequest, ctx: Any) -> MetadataResponse:
        times.append(ctx.now_ms)
        return MetadataResponse()

    handle_metadata(monkeypatch, handle, replicas=lambda _request, _ctx: [])
    bench.delay_ms = 30
    bench.receive(metadata(1), 5)
    bench.clients.changed()
    assert bench.tick(10) == []
    bench.tick(35)
    assert (bench.answered, times) == ([1], [35])
