"""One controller under the fuzz: a connection, and the log as far as it was read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mockraft.conformance.log import FETCH_VERSION_MAX, fetch_request
from mockraft.conformance.requests import Tree, request
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.connection import endpoint_of, read_response
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.messages.fetch_request import FetchRequest
from mockraft.wire.messages.fetch_response import FetchResponse

from ..blocking_connection import BlockingConnection
from .names import NamedRecord, Names
from .steps import FuzzStep, request_class

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

R = TypeVar("R")
TIMEOUT_S = 10


class RequestEffect(NamedTuple):
    """The effect of a request, in shared names: the response, and the records written for it."""

    answer: Tree
    records: list[NamedRecord]


class Side(Names):
    """A controller at `bootstrap` (host:port). Only one `Side` may write to it at a time."""

    def __init__(self, name: str, bootstrap: str, cluster_id: str) -> None:
        super().__init__(cluster_id)
        self.name = name
        self.control_batches = 0
        self._address = endpoint_of(bootstrap)
        self.port = self._address[1]
        self._leader_epoch = self._last_epoch = self._offset = 0
        self._connect()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def request(self, message: RequestMessage[R], version: int) -> R:
        """Send one message and return its response. Raises ConnectionError if the connection is closed instead."""
        return self._connection.exchange(message, version)

    def ask(self, api: str, tree: Tree, version: int) -> None:
        """Send one request, as JSON, and await its response, whatever that is."""
        self._connection.socket.sendall(self._connection.encode(request(api, tree, version), version))
        self._connection.receive_frame()

    def send(self, step: FuzzStep) -> None:
        """Send a step's request, followed by a Fetch."""
        message, version = self.request_of(step)
        data = self._connection.encode(message, version) + self._connection.encode(self._fetch(), FETCH_VERSION_MAX)
        with contextlib.suppress(ConnectionError):  # a closed connection is reported when the response is read
            self._connection.socket.sendall(data)

    def receive(self, step: FuzzStep) -> RequestEffect:
        """Return the outcome of the request that was sent."""
        try:
            tree = _answer(step, self._connection.receive_frame())
            fetched = read_response(self._connection.receive_frame(), FetchResponse.api_key, FETCH_VERSION_MAX)
            records = self._take_response(fetched)[0]
        except (ConnectionError, TimeoutError) as error:
            self._connection.close()
            self._connect()
            tree, records = {"silent" if isinstance(error, TimeoutError) else "closed": True}, []
        records += self.new_records()
        if step.api == "CreateDelegationToken" and (hmac := tree.get("hmac")):
            self.hmacs.append(str(hmac))
        return RequestEffect(self.named(tree), records)

    def answer(self, step: FuzzStep) -> Tree:
        """Send a step's request alone; return the response."""
        self._connection.socket.sendall(self._connection.encode(*self.request_of(step)))
        return _answer(step, self._connection.receive_frame())

    def new_records(self) -> list[NamedRecord]:
        """Read the records written since the last call, without those caused by time only."""
        found: list[NamedRecord] = []
        while True:
            try:
                records, is_end = self._take_response(self.request(self._fetch(), FETCH_VERSION_MAX))
            except ConnectionResetError:  # what was sent behind a request that is refused so comes late
                self._connect()
                continue
            found += records
            if is_end:
                return found

    def _connect(self) -> None:
        self._connection = BlockingConnection(self._address, "fuzz", TIMEOUT_S)

    def _fetch(self) -> FetchRequest:
        return fetch_request(self.cluster_id, self._leader_epoch, self._offset, self._last_epoch)

    def _take_response(self, response: FetchResponse) -> tuple[list[NamedRecord], bool]:
        """Return the records of a Fetch response, and True if they reach the end."""
        if response.error_code or not response.responses:
            raise RuntimeError(f"{self.name} refuses to be read: error {response.error_code}")
        partition = response.responses[0].partitions[0]
        if partition.error_code:
            self._leader_epoch = max(self._leader_epoch, partition.current_leader.leader_epoch)
            return [], False
        return list(self._records(partition.records or b"")), self._offset >= partition.high_watermark

    def _records(self, data: bytes) -> Iterator[NamedRecord]:
        for batch in record_batch.read_batches(data, allow_partial_tail=True):
            if batch.last_offset < self._offset:
                continue
            self._offset, self._last_epoch = batch.last_offset + 1, batch.leader_epoch
            if batch.is_control:
                self.control_batches += 1
                continue
            for offset, (_, value) in enumerate(batch.records, batch.base_offset):
                record, version = metadata_log_frame.decode(value or b"")
                named = self.take(record, version, offset)
                if named is not None:
                    yield named


def _answer(step: FuzzStep, frame: bytes) -> Tree:
    key = request_class(step.api).api_key
    if step.principal is None:
        return to_json(read_response(frame, key, step.version), step.version)
    return _opened(read_response(frame, EnvelopeResponse.api_key, 0), key, step.version)


def _opened(envelope: EnvelopeResponse, key: int, version: int) -> Tree:
    """Return the response in an envelope, or the envelope's error."""
    if envelope.error_code or envelope.response_data is None:
        return {"envelopeErrorCode": envelope.error_code}
    return to_json(read_response(envelope.response_data, key, version), version)
