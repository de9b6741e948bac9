"""One controller under the fuzz: a connection, its log as far as read, its own ids by the names that both share."""

import base64
import contextlib
import hashlib
import re
import socket
import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from mockraft.conformance.fuzz.model import Model
from mockraft.conformance.fuzz.steps import Step, Tree, replaced, request_class
from mockraft.wire import messages, metadata_log_frame, record_batch, uuids
from mockraft.wire.connection import FrameReader, read_response_body, write_request
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

METADATA_TOPIC_ID = bytes(15) + b"\x01"
_SYMBOL = re.compile(r"\$([a-zA-Z]+)(?::([^+]*?))?([+-]\d+)?")
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_EPOCH_IN_TEXT = re.compile(r"(?<=epoch )\d+")
_EPOCHS = {"brokerEpoch", "previousBrokerEpoch", "finalizedFeaturesEpoch"}
_TIMES = {"issueTimestampMs", "expiryTimestampMs", "maxTimestampMs", "issueTimestamp", "expirationTimestamp",
          "maxTimestamp", "lastFetchTimestamp", "lastCaughtUpTimestamp"}  # fmt: skip
_PRODUCER_IDS = {"producerIdStart", "nextProducerId"}
_OWN = {"clusterId", "logEndOffset", "highWatermark", "replicaDirectoryId", "port", "leaderEpoch@quorum"}
_INT64 = 1 << 63


class Outcome(NamedTuple):
    """What a request led to, in names that both sides share: the answer, and the records written for it."""

    answer: Any
    records: list[list[Any]]


class Side:
    """A controller at `bootstrap` (host:port). Only one `Side` may write to it meanwhile."""

    def __init__(self, name: str, bootstrap: str, cluster_id: str, timeout_s: float = 10) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.name = name
        self.cluster_id = cluster_id
        self.control_batches = 0
        self._address = (host, int(port))
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._leader_epoch = self._last_epoch = self._offset = 0
        self._offsets: list[int] = []
        self._topics: dict[str, str] = {}
        self._topic_ids: dict[str, str] = {}
        self._drawn: dict[str, str] = {}
        self.hmacs: list[str] = []
        self.salt = ""
        self.node_id = -1
        self.own_texts = {cluster_id: "$cluster"} if cluster_id else {}
        self.model = Model()
        self._producer_id_base = self._next_producer_id = 0
        self._connect()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, message: Any, version: int) -> Any:
        """The answer to one request, as a message; ConnectionError when the connection was closed instead."""
        self._correlation_id += 1
        self._connection.sendall(write_request(message, version, self._correlation_id, "fuzz"))
        return self._read(message.api_key, version)

    def begin(self) -> None:
        """What is numbered is numbered from here: records, topics, tokens, producer ids."""
        self.hmacs.clear()
        for each in (self._offsets, self._topics, self._topic_ids, self._drawn):
            each.clear()
        self.model.record_count = 0
        self._producer_id_base = self._next_producer_id

    def send(self, step: Step) -> None:
        """Send a step's request, and a Fetch behind it."""
        body = replaced(step.body, lambda text: self._resolved(text))
        message = from_json(request_class(step.api), body, step.version)
        self._correlation_id += 1
        data = write_request(message, step.version, self._correlation_id, "fuzz")
        if step.principal is not None:
            kind, _, name = step.principal.partition(":")
            principal = struct.pack(">h", 0) + DefaultPrincipalData(type=kind, name=name).write(0)
            envelope = EnvelopeRequest(
                request_data=data[4:], request_principal=principal, client_host_address=bytes((127, 0, 0, 1))
            )
            data = write_request(envelope, 0, self._correlation_id, "fuzz")
        self._correlation_id += 1
        fetch = write_request(self._fetch_request(), 17, self._correlation_id, "fuzz")
        with contextlib.suppress(ConnectionError):  # what it did to the other half is told when the answer is read
            self._connection.sendall(data + fetch)

    def receive(self, step: Step) -> Outcome:
        """What the request that was sent led to."""
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
        if step.api == "CreateDelegationToken" and tree.get("hmac"):
            self.hmacs.append(tree["hmac"])
        return Outcome(self.named(tree), records)

    def new_records(self) -> list[list[Any]]:
        """Records written since the last reading, [name, version, JSON], without those that only time makes."""
        found: list[list[Any]] = []
        while True:
            records, is_end = self._partition(self.ask(self._fetch_request(), 17))
            found += records
            if is_end:
                return found

    def named(self, tree: Any, key: str = "") -> Any:
        """JSON with this side's own ids, epochs and times replaced by what both sides call them."""
        if isinstance(tree, dict):
            return {name: self.named(value, name) for name, value in tree.items()}
        if isinstance(tree, list):
            return [self.named(value, key) for value in tree]
        if isinstance(tree, str):
            return self._named_text(tree, key)
        if key in _EPOCHS and isinstance(tree, int):
            return self._epoch(tree)
        if key in _TIMES:
            return "time" if tree > 0 else tree
        if key in _PRODUCER_IDS:
            return tree - self._producer_id_base if tree > 0 else tree
        return "own" if key in _OWN else tree

    def _named_text(self, text: str, key: str) -> str:
        if key in _OWN:
            return "own"
        if key in {"tokenId", "hmac", "id"} and text:
            return self._drawn.setdefault(text, f"{key} {len(self._drawn)}") if key != "id" else self._known_id(text)
        for own, name in self.own_texts.items():
            text = text.replace(own, name)
        if "epoch" in text:
            text = _EPOCH_IN_TEXT.sub(lambda found: str(self._epoch(int(found.group()))), text)
        return _UUID.sub(lambda found: self._topics.get(found.group(), found.group()), text)

    def _known_id(self, text: str) -> str:
        return self._topics.get(text, text)

    def _epoch(self, value: int) -> str | int:
        index = bisect_left(self._offsets, value)
        return f"record {index}" if index < len(self._offsets) and value > 0 else "offset" if value > 0 else value

    def _resolved(self, text: str) -> Any:
        found = _SYMBOL.fullmatch(text)
        if found is None:
            # Ids of topics may be where other ids are expected, and come back as what both sides call them.
            return next((own for own, name in self._topics.items() if name == text), text) if " " in text else text
        kind, name, sum_text = found.groups()
        number = int(sum_text or 0)
        if kind == "cluster":
            return self.cluster_id
        if kind == "topic":
            return self._topic_ids.get(name or "") or uuids.text_of(hashlib.md5((name or "").encode()).digest())
        if kind == "hmac":
            index = int(name or 0)
            return self.hmacs[index] if index < len(self.hmacs) else base64.b64encode(bytes(64)).decode()
        if kind == "dir":
            return self._directory(text)
        if kind == "end":
            # One record back is one offset less only without NoOpRecords, so it is counted in records.
            index = len(self._offsets) - 1 + number
            return self._offsets[index] if 0 <= index < len(self._offsets) else number
        if kind in {"epoch", "registered"}:
            known = self.model.record_index(kind, int(name or 0))
            return (0 if known is None else self._offsets[known]) + number
        return (self.model.partition_number(kind, name or "") + number + _INT64) % (2 * _INT64) - _INT64

    def _directory(self, symbol: str) -> str:
        """A log directory's id: new in each run, and in the same order among others in each."""
        order = hashlib.md5(symbol.encode()).digest()[:4]
        text = uuids.text_of(order + hashlib.md5(f"{self.salt} {symbol}".encode()).digest()[:12])
        self._topics[text] = symbol
        return text

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
        offset = 4 + messages.response_header_version(key, version)
        return read_response_body(self._waiting.pop(0), offset, key, version)

    def _opened(self, envelope: Any, key: int, version: int) -> Tree:
        """The response in an envelope, or the envelope's error."""
        if envelope.error_code or envelope.response_data is None:
            return {"envelopeErrorCode": envelope.error_code}
        offset = 4 + messages.response_header_version(key, version)
        return to_json(read_response_body(envelope.response_data, offset, key, version), version)

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
        """Records of a Fetch answer, and whether they reach the end."""
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
                name = type(record).__name__
                if name == "NoOpRecord":
                    continue
                self._offsets.append(offset)
                if name == "TopicRecord":
                    text = uuids.text_of(record.topic_id)
                    self._topics[text] = f"topic {record.name} {len(self._topics)}"
                    self._topic_ids[record.name] = text
                if name == "ProducerIdsRecord":
                    self._next_producer_id = record.next_producer_id
                tree = self.named(to_json(record, version))
                self.model.take(name, tree)
                yield [name, version, tree]
