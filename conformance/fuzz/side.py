"""One controller under the fuzz: a connection, and the log as far as it was read."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

from mockraft.conformance.fuzz.names import Names
from mockraft.conformance.fuzz.steps import Step, Tree, request_class
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

METADATA_TOPIC_ID = bytes(15) + b"\x01"


class Outcome(NamedTuple):
    """The effect of a request, in shared names: the response, and the records written for it."""

    answer: Any
    records: list[list[Any]]


class Side(Names):
    """A controller at `bootstrap` (host:port). Only one `Side` may write to it at a time."""

    def __init__(self, name: str, bootstrap: str, cluster_id: str, timeout_s: float = 10) -> None:
        host, _, port = bootstrap.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"{bootstrap!r} is no address: give host:port")
        super().__init__(cluster_id)
        self.name = name
        self.control_batches = 0
        self._address = (host, int(port))
        self.port = int(port)
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._leader_epoch = self._last_epoch = self._offset = 0
        self._connect()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def request(self, message: Any, version: int) -> Any:
        """Send one message and return its response. Raises ConnectionError if the connection is closed instead."""
        self._correlation_id += 1
        self._connection.sendall(write_request(message, version, self._correlation_id, "fuzz"))
        return self._read(message.api_key, version)

    def send(self, step: Step) -> None:
        """Send a step's request, followed by a Fetch."""
        self._correlation_id += 1
        data = self.request_of(step, self._correlation_id)
        self._correlation_id += 1
        fetch = write_request(self._fetch_request(), 17, self._correlation_id, "fuzz")
        with contextlib.suppress(ConnectionError):  # a closed connection is reported when the response is read
            self._connection.sendall(data + fetch)

    def receive(self, step: Step) -> Outcome:
        """Return the outcome of the request that was sent."""
        cls = request_class(step.api)
        try:
            if step.principal is None:
                tree = to_json(self._read(cls.api_key, step.version), step.version)
            else:
                tree = self._opened(self._read(EnvelopeRequest.api_key, 0), cls.api_key, step.version)
            records = self._taken(self._read(FetchRequest.api_key, 17))
        except (ConnectionError, TimeoutError) as error:
            self._connection.close()
            self._connect()
            tree, records = {"silent" if isinstance(error, TimeoutError) else "closed": True}, []
        records += self.new_records()
        if step.api == "CreateDelegationToken" and (hmac := tree.get("hmac")):
            self.hmacs.append(str(hmac))
        return Outcome(self.named(tree), records)

    def new_records(self) -> list[list[Any]]:
        """Read the records written since the last call, [name, version, JSON], without those caused by time only."""
        found: list[list[Any]] = []
        while True:
            try:
                records, is_end = self._partition(self.request(self._fetch_request(), 17))
            except ConnectionResetError:  # what was sent behind a request that is refused so comes late
                self._connect()
                continue
            found += records
            if is_end:
                return found

    def _connect(self) -> None:
        self._frames = FrameReader()
        self._waiting: list[bytes] = []
        self._connection = socket.create_connection(self._address, timeout=self._timeout_s)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _read(self, key: int, version: int) -> Any:
        while not self._waiting:
            data = self._connection.recv(1 << 20)
            if not data:
                raise ConnectionError(f"{self.name} closed the connection")
            self._waiting += self._frames.receive_data(data)
        return read_response(self._waiting.pop(0), key, version)

    def _opened(self, envelope: Any, key: int, version: int) -> Tree:
        """Return the response in an envelope, or the envelope's error."""
        if envelope.error_code or envelope.response_data is None:
            return {"envelopeErrorCode": envelope.error_code}
        return to_json(read_response(envelope.response_data, key, version), version)

    def _fetch_request(self) -> FetchRequest:
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=self._leader_epoch,
            fetch_offset=self._offset,
            last_fetched_epoch=self._last_epoch,
            partition_max_bytes=1 << 20,
        )
        topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        return FetchRequest(cluster_id=self.cluster_id, max_wait_ms=0, max_bytes=1 << 20, topics=[topic])

    def _taken(self, response: Any) -> list[list[Any]]:
        return self._partition(response)[0]

    def _partition(self, response: Any) -> tuple[list[list[Any]], bool]:
        """Return the records of a Fetch response, and True if they reach the end."""
        if response.error_code or not response.responses:
            raise RuntimeError(f"{self.name} refuses to be read: error {response.error_code}")
        partition = response.responses[0].partitions[0]
        if partition.error_code:
            if partition.current_leader.leader_epoch > self._leader_epoch:
                self._leader_epoch = partition.current_leader.leader_epoch
            return [], False
        return list(self._records(partition.records or b"")), self._offset >= partition.high_watermark

    def _records(self, data: bytes) -> Iterator[list[Any]]:
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
