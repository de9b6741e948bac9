"""The controller's metadata log, read by Fetch as any replica reads it, from its end at the start of the run."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from mockraft.conformance.expectation import PATIENCE_S, PAUSE_S
from mockraft.conformance.requests import Tree
from mockraft.conformance.target import CannotConnectError, Target
from mockraft.wire import error_codes, metadata_log_frame, record_batch, uuids
from mockraft.wire.client import DisconnectedError, KafkaConnection
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.topic_names import CLUSTER_METADATA_ID

METADATA_TOPIC_ID = uuids.text_of(CLUSTER_METADATA_ID)
FETCH_VERSION_MAX = 17
_UNREADABLE = "the metadata log cannot be read"
_BYTES = 1 << 20


class Written(NamedTuple):
    """One metadata record: its offset, its type ("TopicRecord"), its version and its fields as JSON."""

    offset: int
    kind: str
    version: int
    fields: Tree


class Log:
    """The records written since the run began; shared by all its cases."""

    def __init__(self, target: Target) -> None:
        self.records: list[Written] = []
        self.offset = target.end_offset
        self._epoch = target.leader_epoch
        self._last_epoch = target.leader_epoch
        self._target = target
        self._connection: KafkaConnection | None = None
        self._lock = asyncio.Lock()

    async def catch_up(self) -> None:
        """Read the records written until now into `records`.

        Raises CannotConnectError if that fails; the next call tries again.
        """
        async with self._lock:
            try:
                if self._connection is None or not self._connection.is_open:
                    self._connection = await self._target.open()
                await self._read_all(self._connection)
            except (WireError, DisconnectedError) as error:
                raise CannotConnectError(f"{_UNREADABLE}: {error}") from None

    async def close(self) -> None:
        """Close its connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _read_all(self, connection: KafkaConnection) -> None:
        """Read up to the high watermark; CannotConnectError if no record comes for some time."""
        now = asyncio.get_running_loop().time
        deadline, furthest = now() + PATIENCE_S, self.offset
        while not await self._read(connection, deadline):
            if self.offset > furthest:
                deadline, furthest = now() + PATIENCE_S, self.offset
            elif now() > deadline:
                raise CannotConnectError(f"{_UNREADABLE}: no records from offset {self.offset} on")

    async def _read(self, connection: KafkaConnection, deadline: float) -> bool:
        request = fetch_request(self._target.cluster_id, self._epoch, self.offset, self._last_epoch)
        if request.api_key not in self._target.api_versions:
            raise CannotConnectError(f"{_UNREADABLE}: the controller does not offer Fetch")
        _, newest = self._target.api_versions[request.api_key]
        answer = await self._target.send(connection, request, version=min(FETCH_VERSION_MAX, newest))
        if answer.error_code:
            code_name = error_codes.name(answer.error_code)
            raise CannotConnectError(f"{_UNREADABLE}: {code_name}; cluster id {self._target.cluster_id}")
        partition = next((each for topic in answer.responses for each in topic.partitions), None)
        if partition is None:
            raise CannotConnectError(f"{_UNREADABLE}: the answer to Fetch has no partition")
        if partition.error_code:
            resigned = partition.error_code == error_codes.NOT_LEADER_OR_FOLLOWER
            if resigned and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(PAUSE_S)
            elif partition.current_leader.leader_epoch <= self._epoch:
                raise CannotConnectError(f"{_UNREADABLE}: {error_codes.name(partition.error_code)}")
            self._epoch = max(self._epoch, partition.current_leader.leader_epoch)
            return False
        if partition.diverging_epoch.epoch >= 0:
            self._last_epoch = partition.diverging_epoch.epoch
            self.offset = min(self.offset, partition.diverging_epoch.end_offset)
            return False
        before = self.offset
        for batch in record_batch.read_batches(partition.records or b""):
            self._take(batch)
        if before == self.offset < partition.high_watermark:
            await asyncio.sleep(PAUSE_S)
        return bool(self.offset >= partition.high_watermark)

    def _take(self, batch: record_batch.Batch) -> None:
        start, self.offset, self._last_epoch = self.offset, batch.last_offset + 1, batch.leader_epoch
        if batch.is_control:
            return
        for offset, (_, value) in enumerate(batch.records, batch.base_offset):
            if offset >= start:
                record, version = metadata_log_frame.decode(value or b"")
                kind = type(record).__name__.lstrip("_")
                self.records.append(Written(offset, kind, version, to_json(record, version)))


def fetch_request(cluster_id: str, leader_epoch: int, offset: int, last_epoch: int) -> FetchRequest:
    """Return a Fetch of the metadata log from `offset`, whose previous record is of `last_epoch`."""
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch if offset else 0,
        partition_max_bytes=_BYTES,
    )
    topic = FetchTopic(topic_id=CLUSTER_METADATA_ID, partitions=[partition])
    return FetchRequest(cluster_id=cluster_id, max_wait_ms=0, max_bytes=_BYTES, topics=[topic])
