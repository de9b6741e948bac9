"""A follower's fetching from one leader: one connection and one loop for all partitions of that leader.

Mirrors Kafka's `ReplicaFetcherThread` over `RemoteLeaderEndPoint`: Fetch by topic ids without a session, truncation at
the leader's diverging epoch (KIP-595), a restart where the leader's log begins later.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.effects import Link, Versions
from mockraft.brokers.kernel import Kernel, R
from mockraft.brokers.log_dirs.errors import LogError, StorageError
from mockraft.brokers.partitions.hosted import HostedPartition, whole_batches
from mockraft.brokers.partitions.settings import ReplicaSettings
from mockraft.brokers.replication_quota import ReplicationThrottle
from mockraft.wire import error_codes
from mockraft.wire.errors import DisconnectedError, UnsupportedVersionError, WireError
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from mockraft.wire.messages.fetch_response import FetchResponse, PartitionData
from mockraft.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mockraft.wire.messages.list_offsets_response import ListOffsetsResponse

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

EARLIEST_LOCAL = -4
LATEST = -1
LIST_OFFSETS_VERSION = 8
SOCKET_TIMEOUT_MS = 30_000
FETCH_VERSIONS = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14))
"""Pairs of (metadata.version, Fetch version) from which it is used (MetadataVersion.fetchRequestVersion), 13 before."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Followed:
    leader_epoch: int
    not_before_ms: float = 0.0
    is_in_sync: bool = False


class _Fetched(NamedTuple):
    """One partition of a response that is being processed, the offset that was requested, and its replica then."""

    key: ReplicaKey
    offset: int
    followed: _Followed
    data: PartitionData


class FetchHost(Protocol):
    """The broker whose followers fetch: `Replicas`."""

    broker_id: int
    is_stuck: bool
    settings: ReplicaSettings
    follower_throttle: ReplicationThrottle

    def broker_epoch(self) -> int:
        """Return the epoch of its last registration."""

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        """Return another broker's endpoint."""

    def fetch_version(self) -> int:
        """Return the version of Fetch to use."""

    def hosted(self, key: ReplicaKey) -> HostedPartition | None:
        """Return a replica; None when there is none here."""


class LeaderFetcher:
    """Fetches from one leader until no partition is left; `over` is called then. `fetches` counts responses.

    One request is in flight. `note` is the reason why the last attempt failed, empty when it did not.
    """

    def __init__(self, kernel: Kernel, host: FetchHost, leader_id: int, over: Callable[[LeaderFetcher], None]) -> None:
        self.leader_id = leader_id
        self.fetches = 0
        self.note = ""
        self.partitions: dict[ReplicaKey, _Followed] = {}
        self._kernel = kernel
        self._host = host
        self._over = over
        self._link: Link | None = None
        self._has_changed = False
        self._is_paused = False
        self._requested: dict[ReplicaKey, tuple[int, _Followed]] = {}
        self._held: Callable[[], None] | None = None
        self._timer = f"fetcher {leader_id}"

    def start(self) -> None:
        """Begin in a step of its own, with all partitions that are followed by then."""
        self._pause(0)

    def follow(self, key: ReplicaKey, leader_epoch: int) -> None:
        """Fetch this partition in this epoch, too."""
        self.partitions[key] = _Followed(leader_epoch)
        self._change()

    def leave(self, key: ReplicaKey) -> None:
        """Stop fetching this partition; a response in flight is ignored."""
        if self.partitions.pop(key, None) is not None:
            self._change()

    def unstick(self) -> None:
        """Continue after the host was stuck."""
        held, self._held = self._held, None
        if held is not None:
            held()

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        link, self._link = self._link, None
        if link is not None:
            self._kernel.disconnect(link)

    def _change(self) -> None:
        self._has_changed = True
        if self._is_paused:
            self._pause(0)

    def _pause(self, wait_ms: float) -> None:
        """Wait for this time, or until the partitions change."""
        self._is_paused = True
        self._kernel.after(self._timer, 0 if self._has_changed else wait_ms, self._continue)

    def _continue(self) -> None:
        self._is_paused = self._has_changed = False
        if not self.partitions:
            self._over(self)
            self.close()
        elif self._host.is_stuck:
            self._held = self._continue
        else:
            self._fetch()

    def _fetch(self) -> None:
        endpoint = self._host.endpoint_of(self.leader_id)
        if endpoint is None:
            self._failed(DisconnectedError(f"broker {self.leader_id} has no endpoint"))
            return
        now_ms = self._kernel.now_ms
        due = {key: followed for key, followed in self.partitions.items() if followed.not_before_ms <= now_ms}
        if not due:
            self._pause(min(each.not_before_ms for each in self.partitions.values()) - now_ms)
            return
        if self._host.follower_throttle.has_rate():
            due = {key: followed for key, followed in due.items() if not self._is_held(key, followed)}
        if not due:
            self._pause(self._host.settings.replica_fetch_backoff_ms)
            return
        if self._link is None or self._kernel.versions(self._link) is None:
            # Like Kafka's fetcher, use the version of the metadata.version without an ApiVersions request.
            client_id = f"broker-{self._host.broker_id}-fetcher-0"
            self._link = Link(self._timer, client_id, *endpoint, SOCKET_TIMEOUT_MS, handshake=False, to_broker=True)
        version = self._host.fetch_version()
        self._send(lambda _: self._request(due, version), version, self._fetched)

    def _is_held(self, key: ReplicaKey, followed: _Followed) -> bool:
        """Return True if the throttle holds a replica up (RemoteLeaderEndPoint.shouldFollowerThrottle)."""
        hosted = None if followed.is_in_sync else self._host.hosted(key)
        if hosted is None:
            return False
        return self._host.follower_throttle.holds(hosted.topic, key[1], self._kernel.now_ms)

    def _send(
        self, make: Callable[[Versions], RequestMessage[R]], version: int, on_answer: Callable[[R], None]
    ) -> None:
        assert self._link is not None
        timeout_ms = SOCKET_TIMEOUT_MS
        self._kernel.request(self._link, make, on_answer, self._failed, version=version, timeout_ms=timeout_ms)

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, DisconnectedError | UnsupportedVersionError | WireError):
            raise error
        self._noted(str(error))
        self.close()
        self._pause(self._host.settings.replica_fetch_backoff_ms)

    def _request(self, due: dict[ReplicaKey, _Followed], version: int) -> FetchRequest:
        """Return the request, and keep the requested offsets; partitions with an offline log are left out."""
        settings = self._host.settings
        topics: dict[bytes, list[FetchPartition]] = {}
        self._requested = {}
        for key, followed in due.items():
            hosted = self._host.hosted(key)
            try:
                if hosted is None:
                    raise LogError(error_codes.UNKNOWN_TOPIC_ID, "the replica is gone")
                log = hosted.log
            except LogError:
                self.leave(key)
                continue
            self._requested[key] = (log.end_offset, followed)
            latest_epoch = log.latest_epoch
            topics.setdefault(key[0], []).append(
                FetchPartition(
                    partition=key[1],
                    current_leader_epoch=followed.leader_epoch,
                    fetch_offset=log.end_offset,
                    last_fetched_epoch=-1 if latest_epoch is None else latest_epoch,
                    log_start_offset=log.start_offset,
                    partition_max_bytes=settings.replica_fetch_max_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            topics=[FetchTopic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()],
        )
        if version >= 15:
            request.replica_state = ReplicaState(
                replica_id=self._host.broker_id, replica_epoch=self._host.broker_epoch()
            )
        else:
            request.replica_id = self._host.broker_id
        return request

    def _fetched(self, response: FetchResponse) -> None:
        if self._host.is_stuck:
            # A hanging broker does not process responses either.
            self._held = functools.partial(self._fetched, response)
            return
        self.fetches += 1
        if response.error_code != error_codes.NONE:
            self._failed(DisconnectedError(f"Fetch: {error_codes.name(response.error_code)}"))
            return
        left = deque[_Fetched]()
        for topic in response.responses:
            for data in topic.partitions:
                key = (topic.topic_id, data.partition_index)
                if key in self._requested:
                    left.append(_Fetched(key, *self._requested[key], data))
        self._take_all(left)

    def _take_all(self, left: deque[_Fetched]) -> None:
        """Process partition after partition; a request to the leader about one of them interrupts this."""
        while left:
            fetched = left.popleft()
            if self.partitions.get(fetched.key) is not fetched.followed:
                continue
            if self._take(fetched) and (hosted := self._host.hosted(fetched.key)) is not None:
                self._start_elsewhere(hosted, fetched.followed, lambda: self._take_all(left))
                return
        self._noted("")
        # In the same step: Kafka's fetcher sends the next request at once.
        self._continue()

    def _take(self, fetched: _Fetched) -> bool:
        """Process one partition's response (processFetchRequest); True if our end is outside the leader's log."""
        key, offset, followed, data = fetched
        hosted = self._host.hosted(key)
        if hosted is None or hosted.state.is_leader:
            self.leave(key)
            return False
        with self._handled(hosted):
            if hosted.log.end_offset != offset:
                return False
            if data.error_code == error_codes.OFFSET_OUT_OF_RANGE:
                return True
            if data.error_code != error_codes.NONE:
                # After FENCED_LEADER_EPOCH there is a newer leader, which the metadata will name. Until then this
                # partition is not fetched.
                self._delay(key)
            elif data.diverging_epoch.epoch >= 0 or data.diverging_epoch.end_offset >= 0:
                _truncate(hosted, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            else:
                copied_bytes = _append(hosted, followed.leader_epoch, data)
                self._host.follower_throttle.record(hosted.topic, key[1], copied_bytes, self._kernel.now_ms)
                followed.is_in_sync = hosted.log.end_offset >= data.high_watermark
        return False

    @contextlib.contextmanager
    def _handled(self, hosted: HostedPartition) -> Iterator[None]:
        """Stop fetching a partition whose disk fails; delay one whose log refuses what was fetched."""
        try:
            yield
        except LogError as error:
            _log.warning("broker %d: %s: %s", self._host.broker_id, hosted.name, error)
            if isinstance(error, StorageError):
                self.leave(hosted.key)
            else:
                self._delay(hosted.key)

    def _delay(self, key: ReplicaKey) -> None:
        followed = self.partitions.get(key)
        if followed is not None:
            followed.not_before_ms = self._kernel.now_ms + self._host.settings.replica_fetch_backoff_ms

    def _start_elsewhere(self, hosted: HostedPartition, followed: _Followed, then: Callable[[], None]) -> None:
        """Truncate to the leader's end, or restart at its start (fetchOffsetAndTruncate)."""

        def take_end(leader_end: int) -> bool:
            if leader_end < hosted.log.end_offset:
                hosted.truncate_to(leader_end)
                return True
            return False

        def take_start(leader_start: int) -> bool:
            if leader_start > hosted.log.end_offset:
                hosted.restart_at(leader_start)
            return True

        def ask_start() -> None:
            self._ask_offset(hosted, followed, EARLIEST_LOCAL, take_start, then, then)

        self._ask_offset(hosted, followed, LATEST, take_end, then, ask_start)

    def _ask_offset(
        self,
        hosted: HostedPartition,
        followed: _Followed,
        timestamp: int,
        take: Callable[[int], bool],
        done: Callable[[], None],
        go_on: Callable[[], None],
    ) -> None:
        """Request an offset of the leader's log; `take` returns True, or an error ends the matter, when it is done."""
        requested = ListOffsetsPartition(
            partition_index=hosted.key[1], current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._host.broker_id, topics=[ListOffsetsTopic(name=hosted.topic, partitions=[requested])]
        )

        def answered(response: ListOffsetsResponse) -> None:
            is_done = True
            with self._handled(hosted):
                answer = next((each for topic in response.topics for each in topic.partitions), None)
                if answer is None:
                    raise LogError(error_codes.UNKNOWN_SERVER_ERROR, "ListOffsets: an empty answer")
                if answer.error_code != error_codes.NONE or self.partitions.get(hosted.key) is not followed:
                    raise LogError(answer.error_code, f"ListOffsets: {error_codes.name(answer.error_code)}")
                is_done = take(answer.offset)
            (done if is_done else go_on)()

        self._send(lambda _: request, LIST_OFFSETS_VERSION, answered)

    def _noted(self, note: str) -> None:
        if note and note != self.note:
            _log.info("broker %d: fetching from %d: %s", self._host.broker_id, self.leader_id, note)
        self.note = note


def fetch_version(metadata_version: int) -> int:
    """Return the version of Fetch that brokers use between each other at this metadata.version."""
    return next((fetch for level, fetch in FETCH_VERSIONS if metadata_version >= level), 13)


def _append(hosted: HostedPartition, leader_epoch: int, data: PartitionData) -> int:
    """Append the fetched records; return their bytes."""
    records = whole_batches(bytes(data.records or b""), leader_epoch)
    if records:
        hosted.append_fetched(records)
    log = hosted.log
    log.high_watermark = data.high_watermark
    if log.start_offset < data.log_start_offset <= log.high_watermark:
        log.advance_start_offset(data.log_start_offset)
    if records:
        hosted.wake()
    return len(records)


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
