"""Keep the traffic through a proxy in memory as exchanges, without a capture file."""

from __future__ import annotations

from collections import Counter

from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.recording import Filter, RecorderConnection, TrafficRecorder
from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire.connection import Request


class RecordedExchanges(TrafficRecorder):
    """Exchanges in the order of their requests, numbered from 1, including those still without a response.

    Args:
        bytes_max: stop keeping after this many bytes of frames; None for no limit.
        exchanges_max: maximum number kept; `not_kept` counts further requests by API key.
        kept: which APIs are kept.
    """

    def __init__(
        self, *, bytes_max: int | None = None, exchanges_max: int | None = None, kept: Filter | None = None
    ) -> None:
        super().__init__(kept)
        self.bytes_max = bytes_max
        self.exchanges_max = exchanges_max
        self.exchanges: list[Captured] = []
        self.not_kept: Counter[int] = Counter()
        self._bytes = 0

    @property
    def bytes_kept(self) -> int:
        """Bytes of frames seen until recording ended."""
        return self._bytes

    def connection(self, client: Endpoint, server: Endpoint, time_ns: int) -> RecorderConnection:
        """Begin a connection between these two endpoints."""
        return _KeptConnection(self, client, server)

    def flush(self) -> None:
        """Do nothing: there is no buffer to flush."""

    def close(self) -> None:
        """Do nothing: the exchanges stay."""

    def takes(self, frame: bytes) -> bool:
        """Count a frame; return False if it exceeds the limit."""
        if self.ended is None and self.bytes_max is not None and self._bytes + len(frame) > self.bytes_max:
            self.end(f"the recording has reached its limit of {self.bytes_max} bytes")
        if self.ended is None:
            self._bytes += len(frame)
        return self.ended is None


class _KeptConnection(RecorderConnection):
    def __init__(self, recorder: RecordedExchanges, client: Endpoint, server: Endpoint) -> None:
        super().__init__(recorder, client, server)
        self.kept = recorder
        self.frames = 0
        self.pending: dict[int, int] = {}

    def raw(self, from_client: bool, data: bytes, time_ns: int) -> None:
        """Ignore bytes that are no frame."""

    def closed(self, time_ns: int) -> None:
        """End the connection: pending requests get no response."""

    def keep_request(self, request: Request, time_ns: int) -> None:
        kept = self.kept
        if not kept.takes(request.frame):
            return
        number = len(kept.exchanges) + 1
        if kept.exchanges_max is not None and number > kept.exchanges_max:
            kept.not_kept[request.api_key] += 1
            return
        header = (request.api_key, request.api_version, request.correlation_id, request.client_id)
        ends = (*self.client, *self.server)
        times = (self.frames, None, time_ns, None)
        kept.exchanges.append(Captured(number, self.number, 1, *ends, *header, *times, request.frame, None))
        self.pending[request.correlation_id] = number - 1
        self.frames += 1

    def keep_response(self, frame: bytes, time_ns: int) -> None:
        at = self.pending.pop(int.from_bytes(frame[:4], signed=True), None)
        if self.kept.takes(frame) and at is not None:
            pending = self.kept.exchanges[at]
            answered = pending._replace(
                response_frame_no=pending.request_frame_no, response_ts_ns=time_ns, response=frame
            )
            self.kept.exchanges[at] = answered
