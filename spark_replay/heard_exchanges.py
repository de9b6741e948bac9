"""What a proxy hears, kept in memory as exchanges: for who needs no capture file."""

from __future__ import annotations

from collections import Counter

from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.recording import Filter, Heard, HeardConnection
from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire.connection import Request


class HeardExchanges(Heard):
    """Exchanges in the order of their requests, numbered from 1; one that has no response yet is among them.

    Args:
        bytes_max: no more is kept after so many bytes of frames were said; None for no limit.
        exchanges_max: how many are kept; of further ones `not_kept` counts the requests by API key.
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
        """How many bytes of frames were said until the end of keeping."""
        return self._bytes

    def connection(self, client: Endpoint, server: Endpoint, time_ns: int) -> HeardConnection:
        """A connection between these two that begins now."""
        return _KeptConnection(self, client, server)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """What was heard stays."""

    def takes(self, frame: bytes) -> bool:
        """Count a frame; False when it is beyond the limit."""
        if self.ended is None and self.bytes_max is not None and self._bytes + len(frame) > self.bytes_max:
            self.end(f"the recording has reached its limit of {self.bytes_max} bytes")
        if self.ended is None:
            self._bytes += len(frame)
        return self.ended is None


class _KeptConnection(HeardConnection):
    def __init__(self, heard: HeardExchanges, client: Endpoint, server: Endpoint) -> None:
        super().__init__(heard, client, server)
        self.kept = heard
        self.frames = 0
        self.asked: dict[int, int] = {}

    def raw(self, from_client: bool, data: bytes, time_ns: int) -> None:
        """What is no frame is in no exchange."""

    def closed(self, time_ns: int) -> None:
        """A request that has no response now gets none."""

    def keep_request(self, request: Request, time_ns: int) -> None:
        """Keep a request as an exchange without a response."""
        kept = self.kept
        if not kept.takes(request.frame):
            return
        number = len(kept.exchanges) + 1
        if kept.exchanges_max is not None and number > kept.exchanges_max:
            kept.not_kept[request.api_key] += 1
            return
        said = (request.api_key, request.api_version, request.correlation_id, request.client_id)
        ends = (*self.client, *self.server)
        times = (self.frames, None, time_ns, None)
        kept.exchanges.append(Captured(number, self.number, 1, *ends, *said, *times, request.frame, None))
        self.asked[request.correlation_id] = number - 1
        self.frames += 1

    def keep_response(self, frame: bytes, time_ns: int) -> None:
        """Keep the response in the exchange of its request."""
        at = self.asked.pop(int.from_bytes(frame[:4], signed=True), None)
        if self.kept.takes(frame) and at is not None:
            asked = self.kept.exchanges[at]
            answered = asked._replace(response_frame_no=asked.request_frame_no, response_ts_ns=time_ns, response=frame)
            self.kept.exchanges[at] = answered
