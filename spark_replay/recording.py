"""Record the traffic through a proxy as a capture file while it happens.

The file is pcapng, with an index beside it of one JSON line per exchange. Recording never stops the traffic: when the
disk is full or a file reaches its limit, recording ends with the reason in `ended`, and later frames are only counted.
Every packet is written immediately: a file whose writer was killed is valid up to its last packet.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from mockraft.files.private_files import FILE_MODE
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.wire import api_keys
from mockraft.wire.connection import Request
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.pcapng import PcapngWriter
from mockraft.wire.redaction.messages import masked_request, masked_response

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

INDEX_SUFFIX = ".index.jsonl"
INDEX_LINES_HELD = 1000
"""Buffer of the index: it can be rebuilt from the capture, so lines need not be written one by one."""


class Filter(NamedTuple):
    """The APIs to keep: `only` these (all when empty), and never those in `without`; API keys."""

    only: frozenset[int] = frozenset()
    without: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, texts: Collection[str]) -> Filter:
        """Parse `Fetch`, `BrokerHeartbeat,Fetch` or, to leave out, `!Fetch`. Raises ValueError for an unknown API."""
        only: set[int] = set()
        without: set[int] = set()
        keys = {api_keys.name(key).lower(): key for key in api_keys.NAMES}
        for name in (part.strip() for text in texts for part in text.split(",") if part.strip()):
            key = keys.get(name.lstrip("!").lower())
            if key is None:
                raise ValueError(f"there is no API {name.lstrip('!')!r}; names are like BrokerHeartbeat or Fetch")
            (without if name.startswith("!") else only).add(key)
        return cls(frozenset(only), frozenset(without))

    def keeps(self, api_key: int) -> bool:
        """Return True if exchanges of this API are kept."""
        return api_key not in self.without and (not self.only or api_key in self.only)


class TrafficRecorder(ABC):
    """The traffic through a proxy, counted. Subclasses store the frames of the APIs that `kept` keeps.

    `ended` is the reason why recording ended; None while it goes on.
    """

    def __init__(self, kept: Filter | None = None) -> None:
        self.filter = kept or Filter()
        self.ended: str | None = None
        self.connections = self.requests = self.responses = 0
        self.by_api: Counter[int] = Counter()

    @property
    @abstractmethod
    def bytes_kept(self) -> int:
        """Number of bytes kept."""

    @abstractmethod
    def connection(self, client: Endpoint, server: Endpoint, time_ns: int) -> RecorderConnection:
        """Begin a connection between these two endpoints."""

    def end(self, reason: str) -> None:
        """End recording; what is kept so far stays valid."""
        if self.ended is None:
            self.ended = reason

    @abstractmethod
    def flush(self) -> None:
        """Flush all buffers to the operating system."""

    @abstractmethod
    def close(self) -> None:
        """Close: no more traffic will come."""


class RecorderConnection(ABC):
    """One proxied connection; receives the frames of both sides in the order in which they are sent."""

    def __init__(self, recorder: TrafficRecorder, client: Endpoint, server: Endpoint) -> None:
        recorder.connections += 1
        self.recorder = recorder
        self.number = recorder.connections
        self.client = client
        self.server = server

    def request(self, request: Request, time_ns: int) -> None:
        """Handle a frame from the client. A SASL token is left out: with PLAIN it is a password."""
        self.recorder.requests += 1
        self.recorder.by_api[request.api_key] += 1
        if not self.recorder.filter.keeps(request.api_key):
            return
        if request.api_key == SaslAuthenticateRequest.api_key:
            frame = request.frame[: request.body_offset] + SaslAuthenticateRequest().write(request.api_version)
            request = request._replace(frame=frame)
        self.keep_request(request, time_ns)

    def response(self, api_key: int, frame: bytes, time_ns: int) -> None:
        """Handle a response of the upstream controller."""
        self.recorder.responses += 1
        if self.recorder.filter.keeps(api_key):
            self.keep_response(frame, time_ns)

    @abstractmethod
    def raw(self, from_client: bool, data: bytes, time_ns: int) -> None:
        """Handle bytes that are not Kafka frames, or encrypted ones."""

    @abstractmethod
    def closed(self, time_ns: int) -> None:
        """Handle the end of the connection."""

    @abstractmethod
    def keep_request(self, request: Request, time_ns: int) -> None:
        """Write or remember a request, whose response follows."""

    @abstractmethod
    def keep_response(self, frame: bytes, time_ns: int) -> None:
        """Keep the response to one of the requests."""


class _PendingRequest(NamedTuple):
    request: Request
    offset: int
    time_ns: int


class _RecordedConnection(RecorderConnection):
    """One connection of a capture file."""

    def __init__(self, recording: Recording, client: Endpoint, server: Endpoint, time_ns: int) -> None:
        super().__init__(recording, client, server)
        self.recording = recording
        self.flow = recording.writer.connect(client, server, time_ns)
        self.pending: dict[int, _PendingRequest] = {}

    def keep_request(self, request: Request, time_ns: int) -> None:
        shows = self.recording.show_secrets
        frame = request.frame if shows else masked_request(request.frame)
        offset = self.recording.writer.send(self.flow, True, len(frame).to_bytes(4) + frame, time_ns)
        if request.api_key != api_keys.ENVELOPE:
            # The response to an Envelope can only be decoded with it.
            request = request._replace(frame=b"")
        self.pending[request.correlation_id] = _PendingRequest(request, offset, time_ns)

    def keep_response(self, frame: bytes, time_ns: int) -> None:
        pending = self.pending.pop(int.from_bytes(frame[:4], signed=True), None)
        if pending is not None and not self.recording.show_secrets:
            request = pending.request
            frame = masked_response(frame, request.api_key, request.api_version, request_frame=request.frame)
        offset = self.recording.writer.send(self.flow, False, len(frame).to_bytes(4) + frame, time_ns)
        if pending is not None:
            self.recording.index(self, pending, offset, time_ns)

    def raw(self, from_client: bool, data: bytes, time_ns: int) -> None:
        self.recording.writer.send(self.flow, from_client, data, time_ns)

    def closed(self, time_ns: int) -> None:
        """End the connection; its requests without a response are marked as such in the index."""
        self.recording.writer.close(self.flow, time_ns)
        for pending in self.pending.values():
            self.recording.index(self, pending, None, None)
        self.pending.clear()


class _WholeWrites(io.RawIOBase):
    """A file in which each write is done completely or, if the disk or the limit is full, not at all."""

    def __init__(self, recording: Recording, path: Path) -> None:
        super().__init__()
        self._recording = recording
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
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


class Recording(TrafficRecorder):
    """An open capture file `path` and its index `path` + `.index.jsonl`.

    Args:
        path: the file; it is overwritten.
        bytes_max: recording ends before the file would be larger; None for no limit.
        kept: which APIs are recorded.
        show_secrets: if False, asterisks are recorded in place of secrets (`mockraft.wire.redaction`).

    Raises OSError if one of the two cannot be opened or written to.
    """

    def __init__(
        self, path: Path, *, bytes_max: int | None = None, kept: Filter | None = None, show_secrets: bool = False
    ) -> None:
        super().__init__(kept)
        self.path = path
        self.show_secrets = show_secrets
        self.index_path = path.with_name(path.name + INDEX_SUFFIX)
        self.bytes_max = bytes_max
        self._lines: list[str] = []
        self._file = _WholeWrites(self, path)
        self._index = _WholeWrites(self, self.index_path)
        self.writer = PcapngWriter(cast(BinaryIO, self._file))
        if self.ended is not None:
            self.close()
            raise OSError(self.ended)

    @property
    def bytes_kept(self) -> int:
        """Size of the capture file."""
        return self._file.size

    def connection(self, client: Endpoint, server: Endpoint, time_ns: int) -> _RecordedConnection:
        """Begin a connection between these two endpoints."""
        return _RecordedConnection(self, client, server, time_ns)

    def flush(self) -> None:
        """Write the buffered lines of the index."""
        if self._lines and not self._index.closed:
            self._index.write("".join(f"{line}\n" for line in self._lines).encode())
        self._lines.clear()

    def close(self) -> None:
        """Close both files."""
        self.flush()
        self._file.close()
        self._index.close()

    def index(
        self, connection: _RecordedConnection, pending: _PendingRequest, offset: int | None, time_ns: int | None
    ) -> None:
        """Add an exchange to the index; `offset` and `time_ns` are those of the response."""
        request = pending.request
        line = {
            "connection": connection.number,
            "client": str(connection.client),
            "server": str(connection.server),
            "api": api_keys.name(request.api_key),
            "apiKey": request.api_key,
            "apiVersion": request.api_version,
            "correlationId": request.correlation_id,
            "clientId": request.client_id,
            "requestOffset": pending.offset,
            "requestNs": pending.time_ns,
            "responseOffset": offset,
            "responseNs": time_ns,
        }
        self._lines.append(json.dumps(line, separators=(",", ":")))
        if len(self._lines) >= INDEX_LINES_HELD:
            self.flush()
