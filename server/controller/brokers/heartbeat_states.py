"""Heartbeat state that is not in the log (Kafka's BrokerHeartbeatManager)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class BrokerState(Enum):
    """State of a broker; SHUTDOWN_NOW only occurs in responses, the broker is then fenced."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    is_fenced: bool
    """Value of isFenced in the heartbeat response."""
    should_shut_down: bool
    """Value of shouldShutDown in the heartbeat response."""

    def __init__(self, name: str) -> None:
        self.is_fenced = name in ("fenced", "shutdown now")
        self.should_shut_down = name == "shutdown now"


def next_state(
    current: BrokerState,
    *,
    want_fence: bool,
    want_shut_down: bool,
    is_caught_up: bool,
    leads_any: bool,
    others_passed_shutdown: bool,
) -> BrokerState:
    """Return the state after a heartbeat (BrokerHeartbeatManager.calculateNextBrokerState).

    `is_caught_up`: the broker has read its own registration. `others_passed_shutdown`: every active broker has read
    the records of this broker's controlled shutdown.
    """
    if current is BrokerState.FENCED:
        if want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED if is_caught_up and not want_fence else BrokerState.FENCED
    if current is BrokerState.UNFENCED:
        if want_shut_down:
            return BrokerState.CONTROLLED_SHUTDOWN if leads_any and not want_fence else BrokerState.SHUTDOWN_NOW
        return BrokerState.FENCED if want_fence else BrokerState.UNFENCED
    if current is BrokerState.CONTROLLED_SHUTDOWN:
        return BrokerState.CONTROLLED_SHUTDOWN if leads_any or not others_passed_shutdown else BrokerState.SHUTDOWN_NOW
    return BrokerState.SHUTDOWN_NOW


_NO_OFFSET = -1
_STALE_ENTRIES_MAX = 64


@dataclass(slots=True)
class HeartbeatState:
    """One broker: its last reported offset, and the offset of its controlled shutdown (-1: not in one)."""

    fenced: bool
    metadata_offset: int = _NO_OFFSET
    shutdown_offset: int = _NO_OFFSET

    @property
    def is_shutting_down(self) -> bool:
        """True if the broker is in controlled shutdown."""
        return self.shutdown_offset >= 0

    @property
    def is_active(self) -> bool:
        """True if controlled shutdowns of others wait for it."""
        return not self.fenced and not self.is_shutting_down

    @property
    def current(self) -> BrokerState:
        """State before the next heartbeat."""
        if self.shutdown_offset >= 0:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.FENCED if self.fenced else BrokerState.UNFENCED


class HeartbeatStates:
    """Heartbeat states of all registered brokers, and the lowest offset among the active ones.

    `shutdown_changes` counts begun and ended controlled shutdowns.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, HeartbeatState] = {}
        self.shutdown_changes = 0
        self._active_offsets = _OffsetTally()

    def register(self, broker_id: int, fenced: bool) -> None:
        """Handle a record of the broker's registration.

        Unless it changed the fencing, the broker's offset is unknown until its next heartbeat, as in Kafka.
        """
        state = self.brokers.get(broker_id)
        metadata_offset = _NO_OFFSET
        if state is None:
            self.brokers[broker_id] = HeartbeatState(fenced=True)
        elif state.fenced != fenced:
            metadata_offset = state.metadata_offset
        self.touch(broker_id, fenced, metadata_offset)

    def touch(self, broker_id: int, fenced: bool, metadata_offset: int) -> None:
        """Record a heartbeat with this offset and the broker's new fencing. Fencing ends a controlled shutdown."""
        state = self.brokers[broker_id]
        if state.metadata_offset == metadata_offset and state.fenced == fenced:
            return
        if state.is_active:
            self._active_offsets.discard(state.metadata_offset)
        state.fenced = fenced
        state.metadata_offset = metadata_offset
        if fenced:
            self.shutdown_changes += state.is_shutting_down
            state.shutdown_offset = _NO_OFFSET
        elif state.is_active:
            self._active_offsets.add(metadata_offset)

    def remove(self, broker_id: int) -> None:
        """Remove a broker that was unregistered or replaced by another incarnation."""
        state = self.brokers.pop(broker_id, None)
        if state is None:
            return
        self.shutdown_changes += state.is_shutting_down
        if state.is_active:
            self._active_offsets.discard(state.metadata_offset)

    def enter_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Record that records up to `offset` move the broker's leaderships away; a second call has no effect."""
        state = self.brokers[broker_id]
        if state.is_active:
            self._active_offsets.discard(state.metadata_offset)
            state.shutdown_offset = offset
            self.shutdown_changes += 1

    def others_passed_shutdown(self, broker_id: int) -> bool:
        """Return True if every active broker has read the records of this broker's controlled shutdown."""
        lowest_offset = self._active_offsets.lowest()
        return lowest_offset is None or self.brokers[broker_id].shutdown_offset <= lowest_offset


class _OffsetTally:
    """A multiset of offsets with its minimum: O(log n) per change, without a scan over brokers."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._heap: list[int] = []

    def add(self, offset: int) -> None:
        count = self._counts.get(offset, 0)
        self._counts[offset] = count + 1
        if count == 0:
            heapq.heappush(self._heap, offset)
            if len(self._heap) > 2 * len(self._counts) + _STALE_ENTRIES_MAX:
                self._heap = sorted(self._counts)

    def discard(self, offset: int) -> None:
        count = self._counts[offset] - 1
        if count:
            self._counts[offset] = count
        else:
            del self._counts[offset]

    def lowest(self) -> int | None:
        while self._heap and self._heap[0] not in self._counts:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None


_LONG_AGO_MS = -(1 << 62)


class Session(NamedTuple):
    """One incarnation of a broker, as identified in heartbeats; the last contact is None if a command ended it."""

    broker_id: int
    broker_epoch: int
    last_contact_ms: int | None


class Sessions:
    """Contact times by session; a contact costs one entry of a dictionary, as it comes with every heartbeat.

    A heap has each session with a contact that may be an old one. When that would be the stalest, it gets the newest.
    """

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.timed_out = 0
        """Number of sessions that timed out."""
        # Plain tuples: a session is made for every heartbeat.
        self.contacts_ms: dict[tuple[int, int], int] = {}
        self._stalest: list[tuple[int, tuple[int, int]]] = []

    def touch(self, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        """Record contact with a broker, registered or not."""
        session = (broker_id, broker_epoch)
        if session not in self.contacts_ms:
            heapq.heappush(self._stalest, (now_ms, session))
        self.contacts_ms[session] = now_ms

    def is_valid(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Return True if the broker's session is valid."""
        contact_ms = self.contacts_ms.get((broker_id, broker_epoch))
        return contact_ms is not None and not self._is_expired(contact_ms, now_ms)

    def last_contact_ms(self, broker_id: int, broker_epoch: int) -> int | None:
        """Return the broker's last contact; None if its session expired and was removed."""
        return self.contacts_ms.get((broker_id, broker_epoch))

    def expire(self, broker_id: int, broker_epoch: int) -> None:
        """Expire this session, before all others."""
        session = (broker_id, broker_epoch)
        self.contacts_ms[session] = _LONG_AGO_MS
        heapq.heappush(self._stalest, (_LONG_AGO_MS, session))

    def pop_expired(self, now_ms: int) -> Session | None:
        """Remove and return one expired session; None when all are valid."""
        stalest = self._stalest
        while stalest and self._is_expired(stalest[0][0], now_ms):
            at_ms, session = stalest[0]
            contact_ms = self.contacts_ms.get(session)
            if contact_ms is not None and contact_ms != at_ms:
                heapq.heapreplace(stalest, (contact_ms, session))
                continue
            heapq.heappop(stalest)
            if contact_ms is not None:
                del self.contacts_ms[session]
                self.timed_out += contact_ms != _LONG_AGO_MS
                return Session(*session, None if contact_ms == _LONG_AGO_MS else contact_ms)
        return None

    def _is_expired(self, contact_ms: int, now_ms: int) -> bool:
        return now_ms > contact_ms + self.session_timeout_ms
