"""Last contact of each broker. Soft state: not in the log, not in the image (Kafka's BrokerHeartbeatTracker)."""

from collections import OrderedDict
from typing import NamedTuple

_LONG_AGO_MS = -(1 << 62)


class Session(NamedTuple):
    """One incarnation of a broker, as identified in heartbeats."""

    broker_id: int
    broker_epoch: int


class Sessions:
    """Contact times in the order of contact, so that the stalest is first: each operation is O(1)."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.timed_out = 0
        """Number of sessions that timed out."""
        # Plain tuples: a session is made for every heartbeat.
        self._contacts_ms: OrderedDict[tuple[int, int], int] = OrderedDict()

    def touch(self, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        """Record contact with a broker, registered or not."""
        session = (broker_id, broker_epoch)
        self._contacts_ms[session] = now_ms
        self._contacts_ms.move_to_end(session)

    def is_valid(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Return True if the broker's session is valid."""
        contact_ms = self._contacts_ms.get((broker_id, broker_epoch))
        return contact_ms is not None and not self._is_expired(contact_ms, now_ms)

    def last_contact_ms(self, broker_id: int, broker_epoch: int) -> int | None:
        """Return the broker's last contact; None if its session expired and was removed."""
        return self._contacts_ms.get((broker_id, broker_epoch))

    def expire(self, broker_id: int, broker_epoch: int) -> None:
        """Expire this session, before all others."""
        session = (broker_id, broker_epoch)
        self._contacts_ms[session] = _LONG_AGO_MS
        self._contacts_ms.move_to_end(session, last=False)

    def pop_expired(self, now_ms: int) -> Session | None:
        """Remove and return one expired session; None when all are valid."""
        for session, contact_ms in self._contacts_ms.items():
            if not self._is_expired(contact_ms, now_ms):
                return None
            del self._contacts_ms[session]
            self.timed_out += contact_ms != _LONG_AGO_MS
            return Session(*session)
        return None

    def _is_expired(self, contact_ms: int, now_ms: int) -> bool:
        return now_ms > contact_ms + self.session_timeout_ms
