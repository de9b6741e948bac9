"""A capture file while it is written: exchanges in pcapng, and beside it an index of one JSON line per exchange.

Nothing here may stop the traffic: when the disk is full or a file reaches its limit, recording ends, says why in
`ended`, and what comes after is only counted. Every packet is handed to the system when it comes, so that a file whose
writer was killed is good up to its last packet.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from mockraft.spark_replay.captures import Endpoint
from mockraft.wire import api_keys
from mockraft.wire.connection import Request
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.pcapng import PcapngWriter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

INDEX_SUFFIX = ".index.jsonl"
INDEX_LINES_HELD = 1000
"""The index can be made again from the capture, so it need not be written line by line."""


class Filter(NamedTuple):
    """Which APIs are kept: `only` these (all when empty), and never those in `without`; API keys."""

    only: frozenset[int] = frozenset()
    without: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, texts: Collection[str]) -> Filter:
        """Read `Fetch`, `BrokerHeartbeat,Fetch` or, to leave out, `!Fetch`. ValueError for no API's name."""
        only: set[int] = set()
        without: set[int] = set()
        keys = {api_keys.name(key).lower(): key for key in api_keys.NAMES}
        for name in (part.strip() for text in texts for part in text.split(",") if part.strip()):
            key = keys.get(name.lstrip("!").lower())
            if key is None:
                raise ValueError(
                    f"there is no API {name.lstrip('!')!r}; they are called as BrokerHeartbeat or Fetch is"
                )
            (without if name.startswith("!") else only).add(key)
        return cls(frozenset(only), frozenset(without))

    def keeps(self, api_key: int) -> bool:
        """Whether exchanges of this API are kept."""
        return api_key not in self.without and (not self.only or api_key in self.only)


class _Asked(NamedTuple):
    request: Request
    offset: int
    time_ns: int


class RecordedConnection:
    """One connection of a recording: what each side says goes into the file, in the order in which it is told here."""

    def __init__(self, recording: Recording, number: int, client: Endpoint, server: Endpoint, time_ns: int) -> None:
        self.recording = recording
        self.number = number
        self.client = client
        self.server = server
        self.flow = recording.writer.connect(client, server, time_ns)
        self.asked: dict[int, _Asked] = {}

    def request(self, request: Request, time_ns: int) -> None:
        """The client sent this. A SASL token is left out: that of PLAIN is a password."""
        recording = self.recording
        recording.requests += 1
        recording.by_api[request.api_key] += 1
        if not recording.filter.keeps(request.api_key):
            return
        frame = request.frame
        if request.api_key == SaslAuthenticateRequest.api_key:
            frame = frame[: request.body_offset] + SaslAuthenticateRequest().write(request.api_version)
        offset = recording.writer.send(self.flow, True, len(frame).to_bytes(4) + frame, time_ns)
        self.asked[request.correlation_id] = _Asked(request._replace(frame=b""), offset, time_ns)

    def response(self, api_key: int, frame: bytes, time_ns: int) -> None:
        """The upstream controller answered with this."""
        recording = self.recording
        recording.responses += 1
        if not recording.filter.keeps(api_key):
            return
        asked = self.asked.pop(int.from_bytes(frame[:4], signed=True), None)
        offset = recording.writer.send(self.flow, False, len(frame).to_bytes(4) + frame, time_ns)
        if asked is not None:
            recording.index(self, asked.request, asked.offset, asked.time_ns, offset, time_ns)

    def raw(self, from_client: bool, data: bytes, time_ns: int) -> None:
        """Bytes that are no frames of Kafka's, or encrypted ones."""
        self.recording.writer.send(self.flow, from_client, data, time_ns)

    def closed(self, time_ns: int) -> None:
        """The connection ended; its requests without an answer go into the index as that."""
        self.recording.writer.close(self.flow, time_ns)
        for asked in self.asked.values():
            self.recording.index(self, asked.request, asked.offset, asked.time_ns, None, None)
        self.asked.clear()


class _WholeWrites(io.RawIOBase):
    """A file to which each write is done whole or, at the end of the disk or of the limit, not at all."""

    def __init__(self, recording: Recording, path: Path) -> None:
        super().__init__()
        self._recording = recording
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self.size = 0

    def write(self, data: Buffer, /) -> int:
        recording = self._recording
        view = memoryview(data)
        if recording.ended is None and recording.bytes_max is not None and self.size + len(view) > recording.bytes_max:
            recording.end(f"{self._path} has reached its limit of {recording.bytes_max} bytes")
        if recording.ended is not None:
            return len(view)
        written = 0
        try:
            while written < len(view):
                written += os.write(self._descriptor, view[written:])
        except OSError as error:
            recording.end(f"cannot write {self._path}: {error.strerror}")
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
        else:
            self.size += written
        return len(view)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


class Recording:
    """An open capture file `path` and its index `path` + `.index.jsonl`.

    Args:
        path: the file; it is overwritten.
        bytes_max: recording ends before the file would be larger; None for no limit.
        kept: which APIs are recorded.

    Raises:
        OSError: one of the two cannot be opened or written to.
    """

    def __init__(self, path: Path, *, bytes_max: int | None = None, kept: Filter | None = None) -> None:
        self.path = path
        self.index_path = path.with_name(path.name + INDEX_SUFFIX)
        self.filter = kept or Filter()
        self.bytes_max = bytes_max
        self.ended: str | None = None
        self.connections = self.requests = self.responses = 0
        self.by_api: Counter[int] = Counter()
        self._lines: list[str] = []
        self._file = _WholeWrites(self, path)
        self._index = _WholeWrites(self, self.index_path)
        self.writer = PcapngWriter(cast(BinaryIO, self._file))
        if self.ended is not None:
            self.close()
            raise OSError(self.ended)

    @property
    def bytes_written(self) -> int:
        """Size of the capture file."""
        return self._file.size

    def connection(self, client: Endpoint, server: Endpoint, time_ns: int) -> RecordedConnection:
        """A connection between these two that begins now."""
        self.connections += 1
        return RecordedConnection(self, self.connections, client, server, time_ns)

    def end(self, reason: str) -> None:
        """Record no more; the file is whole as it is."""
        if self.ended is None:
            self.ended = reason

    def flush(self) -> None:
        """Write the lines of the index that are held."""
        if self._lines and not self._index.closed:
            self._index.write("".join(f"{line}\n" for line in self._lines).encode())
        self._lines.clear()

    def close(self) -> None:
        """Close both files."""
        self.flush()
        self._file.close()
        self._index.close()

    def index(
        self,
        connection: RecordedConnection,
        request: Request,
        request_offset: int,
        request_ns: int,
        response_offset: int | None,
        response_ns: int | None,
    ) -> None:
        """Add an exchange to the index."""
        line = {
            "connection": connection.number,
            "client": str(connection.client),
            "server": str(connection.server),
            "api": api_keys.name(request.api_key),
            "apiKey": request.api_key,
            "apiVersion": request.api_version,
            "correlationId": request.correlation_id,
            "clientId": request.client_id,
            "requestOffset": request_offset,
            "requestNs": request_ns,
            "responseOffset": response_offset,
            "responseNs": response_ns,
        }
        self._lines.append(json.dumps(line, separators=(",", ":")))
        if len(self._lines) >= INDEX_LINES_HELD:
            self.flush()
