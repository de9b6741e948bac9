"""The share partitions that a broker leads, and its share sessions (SharePartitionManager, ShareSessionCache)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.coordinators.group_configs import group_config
from mockraft.brokers.core import Core
from mockraft.brokers.partitions.hosted import HostedPartition
from mockraft.brokers.shares.share_partition import SharePartition, ShareSettings
from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_configs.config_values import seconds_of
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError

EPOCH_MAX: Final = 2**31 - 1
SESSIONS_MAX: Final = ("group.share.max.share.sessions", 2_000)
PARTITIONS_MAX: Final = 10_000
"""Beyond it the oldest state is forgotten: any client makes groups."""


@dataclass(slots=True, eq=False)
class ShareSession:
    """The partitions that a member fetches, each with True if the next response must have it.

    `epoch` is that of the next request; the session ends with its connection.
    """

    connection_id: int
    epoch: int
    partitions: dict[ReplicaKey, bool]

    def update(self, added: Iterable[ReplicaKey], forgotten: Collection[ReplicaKey]) -> None:
        """Add partitions and remove others."""
        for key in added:
            self.partitions.setdefault(key, True)
        for key in forgotten:
            self.partitions.pop(key, None)


class Shares:
    """The share groups' state on one broker. `changed` is called with what parked requests may wait for.

    Sessions are by group and member.
    """

    def __init__(self, core: Core, changed: Callable[[], None]) -> None:
        assert core.image is not None
        self._image, self._config = core.image, core.config
        self._changed = changed
        self._sessions_max = int(core.config.properties.get(*SESSIONS_MAX))
        self.partitions: dict[tuple[str, ReplicaKey], SharePartition] = {}
        self.sessions: dict[tuple[str, str], ShareSession] = {}
        self._next_tick_ms = NEVER_MS

    # Partitions.

    def settings(self, group_id: str) -> ShareSettings:
        """Return a group's configs."""
        return ShareSettings(
            self._config_of(group_id, "share.record.lock.duration.ms"),
            self._config_of(group_id, "share.delivery.count.limit"),
            self._config_of(group_id, "share.partition.max.record.locks"),
            self._config_of(group_id, "share.isolation.level") == "read_committed",
        )

    def partition(self, group_id: str, hosted: HostedPartition, now_ms: int) -> SharePartition:
        """Return the state of a partition that this broker leads; at first it begins where the group says."""
        known = self.partitions.get((group_id, hosted.key))
        if known is not None:
            return known
        reset, log = self._config_of(group_id, "share.auto.offset.reset"), hosted.log
        start_offset = log.start_offset if reset == "earliest" else log.high_watermark
        if reset.startswith("by_duration:"):
            found = log.offset_for_timestamp(now_ms - int(1_000 * seconds_of(reset.partition(":")[2])))
            start_offset = min(found[0], start_offset) if found is not None else start_offset
        return self._keep(group_id, hosted.key, SharePartition(start_offset))

    def reset(self, group_id: str, key: ReplicaKey, start_offset: int | None) -> None:
        """Forget the state of a partition, and begin anew at an offset if there is one."""
        self.partitions.pop((group_id, key), None)
        if start_offset is not None:
            self._keep(group_id, key, SharePartition(start_offset, changes=1))
        self.wake()

    def metadata_advanced(self) -> None:
        """Forget the state of partitions that other brokers lead now."""
        me = self._config.broker_id
        for group_id, key in list(self.partitions):
            led = self._image.partition(*key)
            if led is None or led.leader != me:
                del self.partitions[group_id, key]

    def wake(self) -> None:
        """Let fetches look again: there may be records to acquire."""
        self._changed()

    def acquired(self, share: SharePartition) -> None:
        """Let `tick` release what was acquired."""
        self._next_tick_ms = min(self._next_tick_ms, share.next_tick_ms)

    def tick(self, now_ms: int) -> None:
        """Release records whose lock has ended."""
        if now_ms < self._next_tick_ms:
            return
        for (group_id, _), each in list(self.partitions.items()):
            if now_ms >= each.next_tick_ms and each.tick(now_ms, self.settings(group_id)):
                self.wake()
        self._next_tick_ms = min((each.next_tick_ms for each in self.partitions.values()), default=NEVER_MS)

    def next_tick_ms(self) -> int:
        """Return the time of the next `tick`, or an earlier one."""
        return self._next_tick_ms

    # Sessions.

    def open(self, group_id: str, member_id: str, connection_id: int, keys: Iterable[ReplicaKey]) -> ShareSession:
        """Open a session in place of a former one. Raises ApiError when there are too many."""
        self.sessions.pop((group_id, member_id), None)
        if len(self.sessions) >= self._sessions_max:
            raise ApiError(error_codes.SHARE_SESSION_LIMIT_REACHED)
        made = self.sessions[group_id, member_id] = ShareSession(connection_id, 1, dict.fromkeys(keys, True))
        return made

    def session(self, group_id: str, member_id: str, epoch: int | None = None) -> ShareSession:
        """Return a member's session; one that goes on has this epoch, and then the next. Raises ApiError."""
        session = self.sessions.get((group_id, member_id))
        if session is None:
            raise ApiError(error_codes.SHARE_SESSION_NOT_FOUND)
        if epoch is not None:
            if epoch != session.epoch:
                raise ApiError(error_codes.INVALID_SHARE_SESSION_EPOCH)
            session.epoch = epoch % EPOCH_MAX + 1
        return session

    def close(self, group_id: str, member_id: str) -> None:
        """End a session: the member's records are available to others. The last one of a group leaves only changes."""
        session = self.sessions.pop((group_id, member_id))
        settings, is_last = self.settings(group_id), all(group != group_id for group, _ in self.sessions)
        for key in session.partitions:
            share = self.partitions.get((group_id, key))
            if share is not None and share.release(member_id, settings):
                self.wake()
            if share is not None and is_last and not share.changes:
                del self.partitions[group_id, key]

    def disconnected(self, connection_id: int) -> None:
        """End the sessions of a connection that has ended."""
        for key in [key for key, each in self.sessions.items() if each.connection_id == connection_id]:
            self.close(*key)

    def _keep(self, group_id: str, key: ReplicaKey, share: SharePartition) -> SharePartition:
        if len(self.partitions) >= PARTITIONS_MAX:
            del self.partitions[next(iter(self.partitions))]
        self.partitions[group_id, key] = share
        return share

    def _config_of(self, group_id: str, key: str) -> Any:
        return group_config(self._image, self._config.properties, group_id, key)
