"""What a proxy hears, and the capture file of it while it is written.

The file is pcapng; beside it is an index of one JSON line per exchange. Nothing here may stop the traffic: when the
disk is full or a file reaches its limit, recording ends, says why in `ended`, and what comes after is only counted.
Every packet is handed to the system when it comes: a file whose writer was killed is good up to its last packet.
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

from mockraft.spark_replay.endpoints import Endpoint
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


class Heard(ABC):
    """What is said through a proxy, counted. Of the APIs that `kept` keeps, each kind of Heard keeps it in its way.

    `ended` says why no more is kept; None while all is.
    """

    def __init__(self, kept: Filter | None = None) -> None:
        self.filter = kept or Filter()
        self.ended: str | None = None
        self.connections = self.requests = self.responses = 0
        self.by_api: Counter[int] = Counter()

    @property
    @abstractmethod
    def bytes_kept(self) -> int:
        """How many bytes are kept."""

    @abstractmethod
    def connection(self, client: Endpoint, server: Endpoint, time_ns: int) -> HeardConnection:
        """A connection between these two that begins now."""

    def end(self, reason: str) -> None:
        """Keep no more; what is kept is whole as it is."""
        if self.ended is None:
            self.ended = reason

    @abstractmethod
    def flush(self) -> None:
        """Hand everything that is held to the system."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more will be said."""


class HeardConnection(ABC):
    """One connection of what a proxy hears; both sides' frames are told here in the order in which they are said."""

    def __init__(self, heard: Heard, client: Endpoint, server: Endpoint) -> None:
        heard.connections += 1
        self.heard = heard
        self.number = heard.connections
        self.client = client
        self.server = server

    def request(self, request: Request, time_ns: int) -> None:
        """The client sent this. A SASL token is left out: that of PLAIN is a password."""
        self.heard.requests += 1
        self.heard.by_api[request.api_key] += 1
        if not self.heard.filter.keeps(request.api_key):
            return
        if request.api_key == SaslAuthenticateRequest.api_key:
            frame = request.frame[: request.body_offset] + SaslAuthenticateRequest().write(request.api_version)
            request = request._replace(frame=frame)
        self.keep_request(request, time_ns)

    def response(self, api_key: int, frame: bytes, time_ns: int) -> None:
        """The upstream controller answered with this."""
        self.heard.responses += 1
        if self.heard.filter.keeps(api_key):
            self.keep_response(frame, time_ns)

    @abstractmethod
    def raw(self, from_client: bool, data: bytes, time_ns: int) -> None:
        """Bytes that are no frames of Kafka's, or encrypted ones."""

    @abstractmethod
    def closed(self, time_ns: int) -> None:
        """The connection ended."""

    @abstractmethod
    def keep_request(self, request: Request, time_ns: int) -> None:
        """Keep a request."""

    @abstractmethod
    def keep_response(self, frame: bytes, time_ns: int) -> None:
        """Keep the response to one of the requests."""


class _Asked(NamedTuple):
    request: Request
    offset: int
    time_ns: int


class RecordedConnection(HeardConnection):
    """One connection of a capture file."""

    def __init__(self, recording: Recording, client: Endpoint, server: Endpoint, time_ns: int) -> None:
        super().__init__(recording, client, server)
        self.recording = recording
        self.flow = recording.writer.connect(client, server, time_ns)
        self.asked: dict[int, _Asked] = {}

    def keep_request(self, request: Request, time_ns: int) -> None:
        """Write a request."""
        frame = request.frame
        offset = self.recording.writer.send(self.flow, True, len(frame).to_bytes(4) + frame, time_ns)
        self.asked[request.correlation_id] = _Asked(request._replace(frame=b""), offset, time_ns)

    def keep_response(self, frame: bytes, time_ns: int) -> None:
        """Write a response, and the line of its exchange."""
        asked = self.asked.pop(int.from_bytes(frame[:4], signed=True), None)
        offset = self.recording.writer.send(self.flow, False, len(frame).to_bytes(4) + frame, time_ns)
        if asked is not None:
            self.recording.index(self, asked.request, asked.offset, asked.time_ns, offset, time_ns)

    def raw(self, from_client: bool, data: bytes, time_ns: int) -> None:
        """Write bytes that are no frames of Kafka's, or encrypted ones."""
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


class Recording(Heard):
    """An open capture file `path` and its index `path` + `.index.jsonl`.

    Args:
        path: the file; it is overwritten.
        bytes_max: recording ends before the file would be larger; None for no limit.
        kept: which APIs are recorded.

    Raises:
        OSError: one of the two cannot be opened or written to.
    """

    def __init__(self, path: Path, *, bytes_max: int | None = None, kept: Filter | None = None) -> None:
        super().__init__(kept)
        self.path = path
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

    def connection(self, client: Endpoint, server: Endpoint, time_ns: int) -> RecordedConnection:
        """A connection between these two that begins now."""
        return RecordedConnection(self, client, server, time_ns)

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
