"""Last contact of each broker. Soft state: not in the log, not in the image (Kafka's BrokerHeartbeatTracker)."""

import heapq
from typing import NamedTuple

_LONG_AGO_MS = -(1 << 62)


class Session(NamedTuple):
    """One incarnation of a broker, as identified in heartbeats."""

    broker_id: int
    broker_epoch: int


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
                return Session(*session)
        return None

    def _is_expired(self, contact_ms: int, now_ms: int) -> bool:
        return now_ms > contact_ms + self.session_timeout_ms
