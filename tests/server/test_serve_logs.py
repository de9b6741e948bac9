"""Logs: whoever does not read them does not stop the controller."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from mockraft.cli.exit_codes import ExitCode
from mockraft.cli.logs import PENDING_BYTES_MAX, PipeHandler
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.messages.vote_request import VoteRequest

from ..cli.cli import DEADLINE_S, started
from ..rows import each_row

READY = r"mockraft ready bootstrap=([\d.]+):(\d+) .*\n"
PIPE_BYTES = 1 << 16
REQUESTS = PIPE_BYTES // 50
NAME = "evil\x1b]0;x\x07\x9b\u202e\n2026 forged" + "\x9b" * 10_000
CLIENTS = 20


def test_serves_and_ends_while_nobody_reads_its_log() -> None:
    with started("serve", "--port", 0, "--log-level", "debug", ready=READY) as (process, found):
        request = write_request(ApiVersionsRequest(), 0, 1, "a client id that makes its line in the log long")
        with socket.create_connection((found[1], int(found[2])), timeout=DEADLINE_S) as client:
            answers = client.makefile("rb")
            for _ in range(REQUESTS):
                client.sendall(request)
                size = int.from_bytes(answers.read(4), "big")
                assert len(answers.read(size)) == size
        process.terminate()
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr is not None
        assert 0 < len(process.stderr.readlines()) < REQUESTS


@each_row(
    ("protocol", "frame"),
    {
        "a mechanism": ("SASL_PLAINTEXT", write_request(SaslHandshakeRequest(mechanism=NAME), 1, 1, "")),
        "a cluster id": ("PLAINTEXT", write_request(VoteRequest(cluster_id=NAME), 0, 1, "")),
    },
)
def test_names_of_clients_are_cut_and_escaped(protocol: str, frame: bytes) -> None:
    mechanisms = ("--sasl-enabled-mechanisms", "SCRAM-SHA-256") if protocol.startswith("SASL") else ()
    options = ("serve", "--port", 0, "--security-protocol", protocol, *mechanisms)
    with started(*options, ready=READY) as (process, found):
        for number in range(1, CLIENTS + 1):
            source = (f"127.0.0.{number}", 0)  # one host is logged once
            with socket.create_connection((found[1], int(found[2])), DEADLINE_S, source) as client:
                client.sendall(frame)
                client.recv(1)
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_S)
    lines = [line for line in errors.splitlines() if "evil" in line]
    assert 0 < len(lines) <= CLIENTS
    assert max(map(len, lines)) < 3_000
    assert "2026 forged" in lines[0]
    assert all(line.isprintable() for line in errors.splitlines())


def test_an_error_at_the_end_does_not_wait_for_a_reader() -> None:
    read, write = full_pipe()
    command = [sys.executable, "-m", "mockraft", "serve", "--port", "0", "--host", "192.0.2.1"]
    try:
        done = subprocess.run(command, stderr=write, stdout=subprocess.DEVNULL, check=False, timeout=DEADLINE_S)
    finally:
        os.close(read)
        os.close(write)
    assert done.returncode == ExitCode.CANNOT_LISTEN


def full_pipe() -> tuple[int, int]:
    read, write = os.pipe()
    assert os.write(write, bytes(PIPE_BYTES)) == PIPE_BYTES
    return read, write


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = full_pipe()
    yield read, write
    os.close(read)
    os.close(write)


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("test", logging.INFO, __file__, 0, text, None, None)


def test_lines_that_do_not_fit_are_counted_where_they_are_missing(pipe: tuple[int, int]) -> None:
    handler = PipeHandler(pipe[1])
    for number in range(2 * PENDING_BYTES_MAX // 1000):
        handler.handle(record(f"{number:>1000}"))
    with os.fdopen(os.dup(pipe[0]), "rb") as reader:
        assert reader.read(PIPE_BYTES) == bytes(PIPE_BYTES)
        kept = [int(reader.readline()) for _ in range(PENDING_BYTES_MAX // 2000)]
        line = reader.readline()
        while b"dropped" not in line:
            kept.append(int(line))
            line = reader.readline()
        assert kept == list(range(len(kept)))
        dropped = 2 * PENDING_BYTES_MAX // 1000 - len(kept)
        assert line == f"{dropped} lines of the log were dropped here, because nobody read it\n".encode()
        handler.handle(record("after them"))
        assert reader.readline() == b"after them\n"
    handler.close()


def test_a_pipe_that_does_not_block_gets_every_line(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    handler = PipeHandler(pipe[1])
    for number in range(PIPE_BYTES // 200):
        handler.handle(record(f"{number:>400}"))
    with os.fdopen(os.dup(pipe[0]), "rb") as reader:
        assert reader.read(PIPE_BYTES) == bytes(PIPE_BYTES)
        assert [int(reader.readline()) for _ in range(PIPE_BYTES // 200)] == list(range(PIPE_BYTES // 200))
    handler.close()


def test_the_last_lines_are_written_although_shutdown_holds_the_lock(pipe: tuple[int, int]) -> None:
    assert os.read(pipe[0], PIPE_BYTES) == bytes(PIPE_BYTES)
    handler = PipeHandler(pipe[1])
    with handler.lock:  # type: ignore[union-attr]  # as logging.shutdown
        for number in range(3):
            handler.handle(record(str(number)))
        handler.close()
    assert os.read(pipe[0], 100) == b"0\n1\n2\n"


def test_a_pipe_without_a_reader_ends_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    handler = PipeHandler(write)
    handler.handle(record("nobody"))
    handler.close()
    assert not handler._thread.is_alive()
    os.close(write)
