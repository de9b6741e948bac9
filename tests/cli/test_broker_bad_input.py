"""Unusable input of simulated brokers: directories, ids, controllers. Each is reported and affects no other broker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.lifecycle import End
from mockraft.brokers.log_dirs.ensemble import LogDirsError
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.connection import endpoint_of, parse_request, write_response
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from mockraft.wire.topic_names import CLUSTER_METADATA_ID

from ..rows import each_row
from .cli import invoke

CLUSTER_ID = "T0ta1ly_Mocked-Cluster"
NOBODY = "127.0.0.1:1"
DEADLINE_S = 60
Answers = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(*arguments: str, file_bytes_max: int | None = None) -> subprocess.CompletedProcess[str]:
    """`mockraft …` until it ends; with `file_bytes_max` no file can grow beyond, as on a disk that is full."""

    def limit() -> None:
        if file_bytes_max is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))

    return subprocess.run(
        [sys.executable, "-m", "mockraft", *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        preexec_fn=limit,
        # Half a .pyc must not be left where there is no room.
        env=None if file_bytes_max is None else {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def broker(*log_dirs: Path | str, more: tuple[str, ...] = (), **limits: int) -> subprocess.CompletedProcess[str]:
    """`mockraft broker` on these directories, formatting them, with a controller that is not there."""
    named = [option for path in log_dirs for option in ("--log-dir", str(path))]
    always = ("broker", "--id", "1", "--bootstrap-controller", NOBODY, "--cluster-id", CLUSTER_ID, "--for", "0")
    words = (*always, "--format", *named, *more)
    if limits:
        return run(*words, **limits)
    done = invoke(*words)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def assert_refused(done: subprocess.CompletedProcess[str], *texts: str, code: int = 4) -> None:
    """It ended with this code and said all of the texts, without a traceback."""
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, said
    assert "Traceback" not in said
    assert [text for text in texts if text not in said] == []


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_a_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "d1").write_text("no directory")
    assert_refused(broker(tmp_path / "d1"), str(tmp_path / "d1"))
    assert_refused(broker(tmp_path / "d1" / "below"), str(tmp_path / "d1" / "below"))
    assert (tmp_path / "d1").read_text() == "no directory"


def test_a_disk_without_room_is_named_and_keeps_no_half_a_file(tmp_path: Path) -> None:
    assert_refused(broker(tmp_path / "d1", file_bytes_max=10), str(tmp_path / "d1"))
    assert files_below(tmp_path) == []


@pytest.fixture(scope="module")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that a broker has formatted; a test takes a copy."""
    path = tmp_path_factory.mktemp("formatted") / "d1"
    assert broker(path).returncode == 0
    return path


@pytest.mark.parametrize("kept", [0, 1, 20, 60])
def test_meta_properties_that_are_cut_off_are_named_and_left_as_they_are(
    tmp_path: Path, formatted: Path, kept: int
) -> None:
    meta = shutil.copytree(formatted, tmp_path / "d1") / "meta.properties"
    meta.write_bytes(meta.read_bytes()[:kept])
    assert_refused(broker(tmp_path / "d1"), str(tmp_path / "d1"))
    assert len(meta.read_bytes()) == kept


def test_unformatted_directories_are_refused_with_the_format_command(tmp_path: Path) -> None:
    always = ("broker", "--id", "1", "--bootstrap-controller", NOBODY, "--cluster-id", CLUSTER_ID, "--for", "0")
    done = run(*always, "--log-dir", str(tmp_path / "d1"))
    assert_refused(done, str(tmp_path / "d1"), "mockraft format", "--format")
    assert not (tmp_path / "d1").exists()


async def test_lock_refuses_a_second_broker_on_the_same_directory(tmp_path: Path) -> None:
    async with Controller(session_timeout_ms=1_000) as controller:
        options: dict[str, Any] = {"log_dirs": [tmp_path / "d1"], "heartbeat_interval_ms": 100}
        first = await controller.start_broker(1, **options)
        same = ("--id", "1", "--bootstrap-controller", controller.bootstrap, "--log-dir", str(tmp_path / "d1"))
        done = await asyncio.to_thread(run, "broker", *same)
        assert_refused(done, str(tmp_path / "d1" / ".lock"), "stop it, or give this one a directory of its own")
        second = SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1, log_dirs=[tmp_path / "d1"])
        with pytest.raises(BlockingIOError, match="another broker runs on this log directory"):
            async with second:
                pass
        assert first.state is BrokerState.RUNNING
        await first.shut_down()
        again = await controller.start_broker(1, **options)
        assert again.config.previous_broker_epoch == first.life.broker_epoch


async def test_a_port_that_is_taken_is_named() -> None:
    async with Controller() as controller:
        first = await controller.start_broker(1)
        assert first.listener is not None
        taken = ("--bootstrap-controller", controller.bootstrap, "--listener", first.listener.bootstrap)
        done = await asyncio.to_thread(run, "broker", "--id", "2", *taken)
        assert_refused(done, first.listener.bootstrap, code=3)
        assert first.state is BrokerState.RUNNING


@each_row("node_id", ["-1", "2147483648", "one"])
def test_an_id_out_of_range_is_a_usage_error(tmp_path: Path, node_id: str) -> None:
    done = broker(tmp_path / "d1", more=("--id", node_id))
    assert_refused(done, "--id", code=2)
    assert not (tmp_path / "d1").exists()


def test_options_of_directories_without_a_directory_are_a_usage_error() -> None:
    assert_refused(broker(), "--log-dir", code=2)


def test_python_api_raises_the_same_error(tmp_path: Path) -> None:
    (tmp_path / "d1").write_text("no directory")
    with pytest.raises(LogDirsError, match=str(tmp_path / "d1")):
        SimulatedBroker.joining(NOBODY, CLUSTER_ID, 1, log_dirs=[tmp_path / "d1"])
    with pytest.raises(LogDirsError, match="valid non-negative node ID"):
        SimulatedBroker.joining(NOBODY, CLUSTER_ID, -1, log_dirs=[tmp_path / "d2"])


async def reads_one_request(reader: asyncio.StreamReader) -> bytes:
    """The next request's correlation id."""
    size = int.from_bytes(await reader.readexactly(4))
    return (await reader.readexactly(size))[4:8]


async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reads_one_request(reader)
    writer.write(bytes(range(255, 0, -1)))


async def a_web_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reads_one_request(reader)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def a_frame_of_two_gigabytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reads_one_request(reader)
    writer.write(struct.pack(">i", 2**31 - 1) + bytes(1000))


async def another_correlation_id(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    asked = await reads_one_request(reader)
    writer.write(struct.pack(">ii", 6, int.from_bytes(asked) + 7) + bytes(2))


async def an_answer_of_another_kind(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    asked = await reads_one_request(reader)
    writer.write(struct.pack(">i", 6) + asked + b"\0\0")


@contextlib.asynccontextmanager
async def listening(answers: Answers) -> AsyncIterator[tuple[str, list[int]]]:
    """Somebody who is no controller: where it listens, and how many bytes were read on each connection so far."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(0)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await answers(reader, writer)
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"{host}:{port}", connections
    finally:
        server.close()


@pytest.mark.parametrize(
    "answers",
    [noise, a_web_server, a_frame_of_two_gigabytes, another_correlation_id, an_answer_of_another_kind],
    ids=lambda answers: answers.__name__,
)
async def test_malformed_response_is_reported_and_other_brokers_continue(answers: Answers) -> None:
    async with Controller(brokers=1) as controller, listening(answers) as (nonsense, _):
        broker = SimulatedBroker.joining(nonsense, controller.cluster_id, 2)
        broker.start()
        await broker.wait_stopped()
        assert broker.end is End.FATAL
        assert f"is a KRaft controller at {nonsense}?" in broker.end_reason
        assert controller.brokers[1].state is BrokerState.RUNNING
        third = await controller.start_broker(3)
        assert third.state is BrokerState.RUNNING


class Redirecting:
    """Controllers that each say the leader is another one, in an epoch that nobody has heard of yet."""

    def __init__(self) -> None:
        self.endpoints: list[tuple[str, int]] = []
        self.fetches = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            request = parse_request(frame)
            body = self.response(request.api_key).write(request.api_version)
            header_version = messages.response_header_version(request.api_key, request.api_version)
            writer.write(write_response(body, request.correlation_id, header_version))

    def response(self, api_key: int) -> Any:
        if api_key == api_keys.API_VERSIONS:
            offered = [ApiVersion(api_key=key, min_version=0, max_version=4) for key in (18, 62, 63)]
            return ApiVersionsResponse(api_keys=[ApiVersion(api_key=1, min_version=17, max_version=18), *offered])
        self.fetches += 1
        host, port = self.endpoints[self.fetches % len(self.endpoints)]
        leader = 3000 + self.fetches % len(self.endpoints)
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic_id=CLUSTER_METADATA_ID,
                    partitions=[
                        PartitionData(
                            error_code=error_codes.NOT_LEADER_OR_FOLLOWER,
                            current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=self.fetches),
                        )
                    ],
                )
            ],
            node_endpoints=[NodeEndpoint(node_id=leader, host=host, port=port)],
        )


async def test_a_broker_that_is_sent_on_and_on_gives_up_without_haste() -> None:
    nobody_leads = Redirecting()
    async with contextlib.AsyncExitStack() as undo:
        for _ in range(3):
            where, _ = await undo.enter_async_context(listening(nobody_leads.answer))
            nobody_leads.endpoints.append(endpoint_of(where))
        broker = SimulatedBroker.joining(where, CLUSTER_ID, 1, registration_timeout_ms=1000)
        broker.start()
        await broker.wait_stopped()
        assert broker.end is End.NOT_REGISTERED
        assert broker.observer.epoch > 1
        assert nobody_leads.fetches < 100
