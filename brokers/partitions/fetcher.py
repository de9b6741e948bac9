"""A follower's fetching from one leader: one connection and one loop for all partitions of that leader.

Mirrors Kafka's `ReplicaFetcherThread` over `RemoteLeaderEndPoint`: Fetch by topic ids without a session, truncation at
the leader's diverging epoch (KIP-595), a restart where the leader's log begins later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.log_dirs.errors import LogError, StorageError
from mockraft.brokers.partitions.hosted import HostedPartition, whole_batches
from mockraft.wire import client, error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from mockraft.wire.messages.fetch_response import PartitionData

EARLIEST_LOCAL = -4
LATEST = -1
LIST_OFFSETS_VERSION = 8
SOCKET_TIMEOUT_MS = 30_000
FETCH_VERSIONS = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14))
"""Pairs of (metadata.version, Fetch version) from which it is used (MetadataVersion.fetchRequestVersion), 13 before."""

_log = logging.getLogger(__name__)


class FetchSettings(NamedTuple):
    """Kafka's `replica.fetch.*`: times in ms, sizes in bytes."""

    wait_max_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 1_048_576
    response_max_bytes: int = 10_485_760
    backoff_ms: int = 1_000


class Host(Protocol):
    """The parts of the broker that a fetcher needs."""

    broker_id: int
    fetch_settings: FetchSettings
    may_fetch: asyncio.Event

    def broker_epoch(self) -> int:
        """This broker's epoch."""

    def fetch_version(self) -> int:
        """The version of Fetch that the cluster uses."""

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        """Return another broker's endpoint for brokers."""

    def hosted(self, key: ReplicaKey) -> HostedPartition | None:
        """Return the replica of this key."""


@dataclass(slots=True)
class _Followed:
    leader_epoch: int
    not_before_s: float = 0.0


class LeaderFetcher:
    """Fetches from one leader until no partition is left; `over` is called then. `fetches` counts responses.

    `note` is the reason why the last attempt failed, empty when it did not.
    """

    def __init__(self, host: Host, leader_id: int, over: Callable[[LeaderFetcher], None]) -> None:
        self.leader_id = leader_id
        self.fetches = 0
        self.note = ""
        self.partitions: dict[ReplicaKey, _Followed] = {}
        self._host = host
        self._over = over
        self._connection: client.KafkaConnection | None = None
        self._changed = asyncio.Event()

    def follow(self, key: ReplicaKey, leader_epoch: int) -> None:
        """Fetch this partition in this epoch, too."""
        self.partitions[key] = _Followed(leader_epoch)
        self._changed.set()

    def leave(self, key: ReplicaKey) -> None:
        """Stop fetching this partition; a response in flight is ignored."""
        self.partitions.pop(key, None)
        self._changed.set()

    async def run(self) -> None:
        """Fetch until there are no partitions any more."""
        try:
            while self.partitions:
                self._changed.clear()
                await self._host.may_fetch.wait()
                await self._fetch()
        finally:
            self._over(self)
            await self._close()

    async def _fetch(self) -> None:
        requested = self._due()
        if not requested:
            soonest_s = min(each.not_before_s for each in self.partitions.values()) if self.partitions else 0.0
            await self._pause(soonest_s - asyncio.get_running_loop().time())
            return
        try:
            connection = await self._connected()
            version = self._host.fetch_version()
            offsets, request = self._request(requested, version)
            response = await connection.send(request, version=version, timeout_ms=SOCKET_TIMEOUT_MS)
            # A hanging broker does not process responses either.
            await self._host.may_fetch.wait()
            self.fetches += 1
            if response.error_code != error_codes.NONE:
                raise client.DisconnectedError(f"Fetch: {error_codes.name(response.error_code)}")
            for topic in response.responses:
                for data in topic.partitions:
                    key = (topic.topic_id, data.partition_index)
                    if key in offsets and self.partitions.get(key) is requested[key]:
                        await self._take(connection, key, offsets[key], data)
            self._noted("")
        except (client.DisconnectedError, client.UnsupportedVersionError, WireError) as error:
            self._noted(str(error))
            await self._close()
            await self._pause(self._host.fetch_settings.backoff_ms / 1000)

    def _due(self) -> dict[ReplicaKey, _Followed]:
        now_s = asyncio.get_running_loop().time()
        return {key: followed for key, followed in self.partitions.items() if followed.not_before_s <= now_s}

    def _request(
        self, requested: dict[ReplicaKey, _Followed], version: int
    ) -> tuple[dict[ReplicaKey, int], FetchRequest]:
        """Return the requested offsets and the request; partitions with an offline log are left out."""
        settings = self._host.fetch_settings
        topics: dict[bytes, list[FetchPartition]] = {}
        offsets: dict[ReplicaKey, int] = {}
        for key, followed in requested.items():
            hosted = self._host.hosted(key)
            try:
                if hosted is None:
                    raise LogError(error_codes.UNKNOWN_TOPIC_ID, "the replica is gone")
                log = hosted.log
            except LogError:
                self.leave(key)
                continue
            offsets[key] = log.end_offset
            latest_epoch = log.latest_epoch
            topics.setdefault(key[0], []).append(
                FetchPartition(
                    partition=key[1],
                    current_leader_epoch=followed.leader_epoch,
                    fetch_offset=log.end_offset,
                    last_fetched_epoch=-1 if latest_epoch is None else latest_epoch,
                    log_start_offset=log.start_offset,
                    partition_max_bytes=settings.max_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            topics=[FetchTopic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()],
        )
        if version >= 15:
            request.replica_state = ReplicaState(
                replica_id=self._host.broker_id, replica_epoch=self._host.broker_epoch()
            )
        else:
            request.replica_id = self._host.broker_id
        return offsets, request

    async def _take(
        self, connection: client.KafkaConnection, key: ReplicaKey, offset: int, data: PartitionData
    ) -> None:
        """Process the leader's response for one partition (processFetchRequest)."""
        hosted, followed = self._host.hosted(key), self.partitions[key]
        if hosted is None or hosted.state.is_leader:
            self.leave(key)
            return
        try:
            if hosted.log.end_offset != offset:
                return
            if data.error_code == error_codes.OFFSET_OUT_OF_RANGE:
                await self._start_elsewhere(connection, hosted, followed)
            elif data.error_code == error_codes.FENCED_LEADER_EPOCH:
                # There is a newer leader, which the metadata will name. Until then this partition is not fetched.
                self._delay(key)
            elif data.error_code != error_codes.NONE:
                self._delay(key)
            elif data.diverging_epoch.epoch >= 0 or data.diverging_epoch.end_offset >= 0:
                _truncate(hosted, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            else:
                _append(hosted, followed.leader_epoch, data)
        except StorageError as error:
            _log.warning("broker %d: %s: %s", self._host.broker_id, hosted.name, error)
            self.leave(key)
        except LogError as error:
            _log.warning("broker %d: %s: %s", self._host.broker_id, hosted.name, error)
            self._delay(key)

    def _delay(self, key: ReplicaKey) -> None:
        followed = self.partitions.get(key)
        if followed is not None:
            followed.not_before_s = asyncio.get_running_loop().time() + self._host.fetch_settings.backoff_ms / 1000

    async def _start_elsewhere(
        self, connection: client.KafkaConnection, hosted: HostedPartition, followed: _Followed
    ) -> None:
        """Handle our end outside the leader's log (fetchOffsetAndTruncate): truncate to its end, or restart at its
        start.
        """
        leader_end = await self._leader_offset(connection, hosted, followed, LATEST)
        if leader_end < hosted.log.end_offset:
            hosted.truncate_to(leader_end)
            return
        leader_start = await self._leader_offset(connection, hosted, followed, EARLIEST_LOCAL)
        log = hosted.log
        if leader_start > log.end_offset:
            log.truncate_fully_at(leader_start)
            hosted.producers.truncate(0)

    async def _leader_offset(
        self, connection: client.KafkaConnection, hosted: HostedPartition, followed: _Followed, timestamp: int
    ) -> int:
        requested = ListOffsetsPartition(
            partition_index=hosted.key[1], current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._host.broker_id, topics=[ListOffsetsTopic(name=hosted.topic, partitions=[requested])]
        )
        response = await connection.send(request, version=LIST_OFFSETS_VERSION)
        for topic in response.topics:
            for answer in topic.partitions:
                if answer.error_code == error_codes.NONE and self.partitions.get(hosted.key) is followed:
                    return int(answer.offset)
                raise LogError(answer.error_code, f"ListOffsets: {error_codes.name(answer.error_code)}")
        raise LogError(error_codes.UNKNOWN_SERVER_ERROR, "ListOffsets: an empty answer")

    async def _connected(self) -> client.KafkaConnection:
        if self._connection is None or not self._connection.is_open:
            endpoint = self._host.endpoint_of(self.leader_id)
            if endpoint is None:
                raise client.DisconnectedError(f"broker {self.leader_id} has no endpoint")
            # Like Kafka's fetcher, use the version of the metadata.version without an ApiVersions request.
            self._connection = await client.connect(
                *endpoint,
                client_id=f"broker-{self._host.broker_id}-fetcher-0",
                request_timeout_ms=SOCKET_TIMEOUT_MS,
                handshake=False,
            )
        return self._connection

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _pause(self, wait_s: float) -> None:
        if wait_s <= 0:
            return
        try:
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        except TimeoutError:
            return

    def _noted(self, note: str) -> None:
        if note and note != self.note:
            _log.info("broker %d: fetching from %d: %s", self._host.broker_id, self.leader_id, note)
        self.note = note


def fetch_version(metadata_version: int) -> int:
    """Return the version of Fetch that brokers use between each other at this metadata.version."""
    return next((fetch for level, fetch in FETCH_VERSIONS if metadata_version >= level), 13)


def _append(hosted: HostedPartition, leader_epoch: int, data: PartitionData) -> None:
    records = whole_batches(bytes(data.records or b""), leader_epoch)
    if records:
        hosted.append_fetched(records)
    log = hosted.log
    log.high_watermark = data.high_watermark
    if log.start_offset < data.log_start_offset <= log.high_watermark:
        log.advance_start_offset(data.log_start_offset)
    if records:
        hosted.wake()


def _truncate(hosted: HostedPartition, epoch: int, end_offset: int) -> None:
    """Truncate our log at the point where it diverges from the leader's (getOffsetTruncationState)."""
    log = hosted.log
    if end_offset < 0:
        hosted.truncate_to(log.high_watermark)
        return
    our_epoch, our_end = log.end_of_epoch(epoch) if epoch >= 0 else (-1, -1)
    if our_epoch < 0:
        target = end_offset
    elif our_epoch != epoch:
        target = our_end
    else:
        target = min(our_end, end_offset)
    hosted.truncate_to(min(target, log.end_offset))
