"""Events of the cluster, each with what caused it: registrations, fencing, topics, elections of controllers, faults.

A controller adds those of the records that it appends once they are committed, the faults' registry its own. All nodes
of a quorum share one list, which is bounded; it begins anew with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from mockraft.server.controller.image.cluster import FENCE, IN_CONTROLLED_SHUTDOWN, UNFENCE
from mockraft.server.views import View
from mockraft.wire.message import Message
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord
from mockraft.wire.records.topic_record import TopicRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

if TYPE_CHECKING:
    from mockraft.server.controller.image import Image

EVENTS_MAX: Final = 2_000
_NAMES_MAX: Final = 3
"""Number of topics of one request that an event names."""

Subject: TypeAlias = Literal["broker", "topic", "controller", "fault"]


@dataclass(frozen=True, slots=True)
class Event(View):
    """A change (`fenced`) of a subject with a name (broker 10), and why it came. Ids increase and are not reused."""

    id: int
    time_ms: int
    subject: Subject
    name: str
    change: str
    why: str


class Change(NamedTuple):
    """An event without its time and cause."""

    subject: Subject
    name: str
    change: str


class Events:
    """The newest events. `cause` returns the sender of the current request, if one is handled.

    `silence` returns what kept a broker's heartbeats away since a time: a stub or the faults, or an empty text.
    """

    def __init__(self) -> None:
        self._ring: deque[Event] = deque(maxlen=EVENTS_MAX)
        self._last_id = 0
        self.cause: Callable[[], str] | None = None
        self.silence: Callable[[int, int], str] = lambda broker_id, since_ms: ""

    def add(self, change: Change, time_ms: int, *why: str) -> None:
        """Add an event, with each part of its cause that is known."""
        self.publish(self.made(change, time_ms, *why))

    def made(self, change: Change, time_ms: int, *why: str) -> Event:
        """Return an event that is not in the list yet, and has no id."""
        parts = [*why, self.cause() if self.cause is not None else ""]
        return Event(0, time_ms, *change, "; ".join(filter(None, parts)))

    def publish(self, event: Event) -> None:
        """Add an event with the next id."""
        self._last_id += 1
        self._ring.append(replace(event, id=self._last_id))

    def find(self, after_id: int | None, limit: int, broker_id: int | None = None) -> list[Event]:
        """Return the newest, or the oldest after an id, of one broker or of everything; oldest first."""
        about = None if broker_id is None else ("broker", str(broker_id))
        found = [
            each for each in self._ring if about in (None, (each.subject, each.name)) and each.id > (after_id or 0)
        ]
        return found[-limit:] if after_id is None else found[:limit]

    def clear(self) -> None:
        """Forget all events; ids continue."""
        self._ring.clear()


def changes_of(records: Iterable[RecordAt], image: Image) -> list[Change]:
    """Return what records change, before `image` has them; topics that change together are one event."""
    changes: list[Change] = []
    topics: dict[str, list[str]] = {}
    for record, _ in records:
        if isinstance(record, TopicRecord):
            topics.setdefault("created", []).append(record.name)
        elif isinstance(record, RemoveTopicRecord):
            gone = image.topics.by_id.get(record.topic_id)
            topics.setdefault("deleted", []).extend([gone.name] if gone is not None else [])
        else:
            changes += _of_broker(record)
    changes = [each for each in changes if not _is_known(each, image)]
    return [*changes, *(Change("topic", _listed(names), change) for change, names in topics.items() if names)]


def _is_known(change: Change, image: Image) -> bool:
    """Return True for the fencing of a broker that is fenced, as when the session of one fenced by hand ends."""
    known = image.cluster.brokers.get(int(change.name))
    return change.change == "fenced" and known is not None and known.fenced


def _of_broker(record: Message) -> Iterator[Change]:
    if isinstance(record, BrokerRegistrationChangeRecord):
        name = str(record.broker_id)
        if record.fenced in (FENCE, UNFENCE):
            yield Change("broker", name, "fenced" if record.fenced == FENCE else "unfenced")
        if record.in_controlled_shutdown == IN_CONTROLLED_SHUTDOWN:
            yield Change("broker", name, "in controlled shutdown")
    elif isinstance(record, FenceBrokerRecord | UnfenceBrokerRecord):
        yield Change("broker", str(record.id), "fenced" if isinstance(record, FenceBrokerRecord) else "unfenced")
    elif isinstance(record, RegisterBrokerRecord):
        yield Change("broker", str(record.broker_id), "registered")
    elif isinstance(record, UnregisterBrokerRecord):
        yield Change("broker", str(record.broker_id), "unregistered")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_MAX])
    return shown if len(names) <= _NAMES_MAX else f"{shown} and {len(names) - _NAMES_MAX} more"
