"""The controller's metadata log, read by Fetch as any replica reads it, from its end at the start of the run."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from mockraft.conformance.requests import Tree
from mockraft.conformance.target import CannotConnectError, Target
from mockraft.wire import error_codes, metadata_log_frame, record_batch, uuids
from mockraft.wire.client import KafkaConnection
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
FETCH_VERSION_MAX = 17
_BYTES = 1 << 20
_PATIENCE_S = 20.0
_PAUSE_S = 0.05


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
        """Read the records written until now into `records`."""
        async with self._lock:
            if self._connection is None:
                self._connection = await self._target.open()
            deadline = asyncio.get_running_loop().time() + _PATIENCE_S
            while not await self._read(self._connection, deadline):
                pass

    async def close(self) -> None:
        """Close its connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _read(self, connection: KafkaConnection, deadline: float) -> bool:
        request = fetch_request(self._target.cluster_id, self._epoch, self.offset, self._last_epoch)
        _, newest = self._target.api_versions[request.api_key]
        answer = await connection.send(request, version=min(FETCH_VERSION_MAX, newest))
        if answer.error_code:
            code_name = error_codes.name(answer.error_code)
            raise CannotConnectError(
                f"the metadata log cannot be read: {code_name}; cluster id {self._target.cluster_id}"
            )
        partition = answer.responses[0].partitions[0]
        if partition.error_code:
            resigned = partition.error_code == error_codes.NOT_LEADER_OR_FOLLOWER
            if resigned and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(_PAUSE_S)
            elif partition.current_leader.leader_epoch <= self._epoch:
                raise CannotConnectError(f"the metadata log cannot be read: {error_codes.name(partition.error_code)}")
            self._epoch = max(self._epoch, partition.current_leader.leader_epoch)
            return False
        if partition.diverging_epoch.epoch >= 0:
            self._last_epoch = partition.diverging_epoch.epoch
            self.offset = min(self.offset, partition.diverging_epoch.end_offset)
            return False
        for batch in record_batch.read_batches(partition.records or b""):
            self._take(batch)
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
    topic = FetchTopic(topic_id=uuids.read_text(METADATA_TOPIC_ID), partitions=[partition])
    return FetchRequest(cluster_id=cluster_id, max_wait_ms=0, max_bytes=_BYTES, topics=[topic])
