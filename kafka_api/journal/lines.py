"""Entries of the journal as lines of text: time, sender, request with its significant fields, outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mockraft.kafka_api.journal.exchange import ClosedConnection, Exchange, Failure, first_error
from mockraft.kafka_api.journal.journal import Entry
from mockraft.wire import error_codes
from mockraft.wire.errors import WireError
from mockraft.wire.message import Struct, field_names, with_constructor
from mockraft.wire.names import camel
from mockraft.wire.printable import printable_line
from mockraft.wire.topic_names import CLUSTER_METADATA_ID
from mockraft.wire.uuids import text_of

FIELDS_MAX = 4
TEXT_MAX = 24
PART_MAX = 400
"""Characters of a client's name, or of the reason why its connection was closed."""
LINES_MAX = 40
ENTRIES_LOOKED_AT_MAX = 5000

_NOT_SIGNIFICANT = frozenset(
    (
        "broker_id",
        "cluster_id",
        "cluster_metadata_included",
        "current_leader_epoch",
        "error_code",
        "error_message",
        "high_watermark",
        "isolation_level",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "partition_max_bytes",
        "previous_broker_epoch",
        "replica_directory_id",
        "replica_id",
        "session_epoch",
        "session_id",
        "throttle_time_ms",
        "timeout_ms",
    )
)

_NAMES = ("name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "resource_name", "feature")
"""Fields by which an element of a list is named, the first that is set."""


@dataclass(frozen=True)
class EntryText:
    """The text of one entry; consecutive entries of one `stream` with the same `kind` share a line with a count."""

    at_ms: int
    node_id: int
    at_broker: bool
    id: str
    who: str
    what: str
    outcome: str
    stream: tuple[object, ...]
    kind: tuple[object, ...]


@dataclass
class _Group:
    first: EntryText
    count: int
    last_ms: int


def line(entry: Entry, since_ms: int = 0) -> str:
    """Return an entry as one line; its time is seconds since `since_ms`."""
    return _lines([_Group(entry_text(entry), 1, 0)], since_ms)[0]


def lines(entries: Iterable[Entry], since_ms: int = 0) -> list[str]:
    """Return entries as aligned lines."""
    return _lines([_Group(entry_text(entry), 1, 0) for entry in entries], since_ms)


def report(entries: Iterable[Entry], since_ms: int | None = None, lines_max: int = LINES_MAX) -> str:
    """Return the journal for a failing test: the newest lines, repetitions as one line with a count.

    Times are seconds since `since_ms`, or since the first of the entries.
    """
    entries = list(entries)
    since_ms = began_ms(entries) if since_ms is None else since_ms
    groups = _groups(entries[-ENTRIES_LOOKED_AT_MAX:])
    left_out = sum(group.count for group in groups[:-lines_max])
    head = [f"({left_out} earlier entries left out)"] if left_out else []
    return "\n".join(head + _lines(groups[-lines_max:], since_ms))


def began_ms(entries: Sequence[Entry]) -> int:
    """Return the time of the first entry; 0 without any."""
    return entry_text(entries[0]).at_ms if entries else 0


def _groups(entries: Iterable[Entry]) -> list[_Group]:
    groups: list[_Group] = []
    newest: dict[tuple[object, ...], _Group] = {}
    for text in map(entry_text, entries):
        group = newest.get(text.stream)
        if group is not None and group.first.kind == text.kind:
            group.count += 1
            group.last_ms = text.at_ms
        else:
            newest[text.stream] = group = _Group(text, 1, text.at_ms)
            groups.append(group)
    return groups


def _lines(groups: list[_Group], since_ms: int) -> list[str]:
    """Return aligned lines; the node is named if there are several."""
    is_quorum = len({group.first.node_id for group in groups if not group.first.at_broker}) > 1
    rows = []
    for group in groups:
        text = group.first
        who = text.who
        if text.at_broker or is_quorum:
            who += f", at {'broker ' if text.at_broker else ''}{text.node_id}"
        again = f"  ×{group.count}, last at {_time(group.last_ms, since_ms)}" if group.count > 1 else ""
        rows.append((_time(text.at_ms, since_ms), text.id, who, text.what, text.outcome + again))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        f"{at:>{widths[0]}}  {number:<{widths[1]}}  {who:<{widths[2]}}  {what}  {outcome}".rstrip()
        for at, number, who, what, outcome in rows
    ]


def entry_text(entry: Entry) -> EntryText:
    """Return the parts of an entry's line: time, node, number, peer, what happened and how it ended."""
    text = _entry_text(entry)
    who, what, outcome = (printable_line(part, PART_MAX) for part in (text.who, text.what, text.outcome))
    return replace(text, who=who, what=what, outcome=outcome)


def _entry_text(entry: Entry) -> EntryText:
    number, node = f"#{entry.id}", (entry.node_id, entry.at_broker)
    if isinstance(entry, Exchange):
        return _exchange(entry)
    if isinstance(entry, ClosedConnection):
        what = f"closed by the {'broker' if entry.at_broker else 'controller'}:" if entry.refused else "closed:"
        who = f"connection {entry.connection_id}"
        return EntryText(entry.closed_ms, *node, number, who, what, entry.reason, (number,), ())
    assert isinstance(entry, Failure)
    what = "a login, periodic work or a listener broke:"
    return EntryText(entry.at_ms, *node, number, "controller", what, raised(entry.failure), (number,), ())


def _exchange(entry: Exchange) -> EntryText:
    try:
        fields = list(significant_fields(entry.shown_request))
    except WireError:
        fields = [("request", "unreadable")]
    texts = (_field_text(name, value, entry.topic_name) for name, value in fields[:FIELDS_MAX])
    asked = [f"{entry.api} v{entry.api_version}", *texts]
    answer = _answer(entry)
    took_ms = entry.answered_ms - entry.received_ms
    outcome = [f"→ {answer}"]
    if took_ms:
        outcome.append(f"after {took_ms} ms")
    if entry.matched and f"(stub {entry.matched})" not in answer:
        outcome.append(f"{'by' if entry.served_by.startswith('stub ') else 'through'} stub {entry.matched}")
    if entry.unmatched:
        outcome.append("UNEXPECTED")
    if entry.failure:
        outcome.append(f"BROKE: {raised(entry.failure)}")
    # Integers such as offsets and epochs change with every request, so they do not make a line different.
    same = tuple(field for field in fields if type(field[1]) is not int)
    return EntryText(
        entry.received_ms,
        entry.node_id,
        entry.at_broker,
        f"#{entry.id}",
        _who(entry),
        " ".join(asked),
        "  ".join(outcome),
        (entry.node_id, entry.connection_id, entry.api_key),
        # A stub's exchanges may differ in their delay.
        (same, answer, entry.served_by, entry.failure, entry.matched and tuple(outcome)),
    )


def _who(entry: Exchange) -> str:
    if entry.envelope is not None:
        by = f"forwarded by broker {entry.broker_id}" if entry.broker_id >= 0 else "forwarded"
        return f"{entry.client_id}, {by}" if entry.client_id else by
    connection = f"connection {entry.connection_id}"
    if entry.broker_id >= 0:
        return f"broker {entry.broker_id}, {connection}"
    return f"{entry.client_id}, {connection}" if entry.client_id else connection


def _answer(entry: Exchange) -> str:
    why = f" ({entry.reason})" if entry.reason else ""
    if not (entry.envelope or entry).response_frame:
        return f"no answer{why}"
    error_code = entry.error_code
    if error_code is None:
        return f"{len(entry.response_frame)} bytes that cannot be read{why}"
    if error_code:
        return _refused(entry, error_code) + error_codes.name(error_code) + why
    if not entry.response_frame:
        return f"ok{why}"
    return " ".join(["ok", *list(_true_fields(entry.shown_response))[:FIELDS_MAX]]) + why


def _refused(entry: Exchange, error_code: int) -> str:
    """Return the names of the elements with this error in a list of the response, if others have none."""
    response = entry.shown_response if entry.response_frame else None
    for name in () if response is None else field_names(type(response)):
        elements = getattr(response, name)
        refused = [each for each in elements if first_error(each) == error_code] if isinstance(elements, list) else []
        if refused and not all(map(first_error, elements)) and (names := _names(refused)):
            return _shortened(",".join(_text(each, entry.topic_name) for each in names)) + ": "
    return ""


def _true_fields(message: Struct) -> Iterator[str]:
    """Yield the names of what is true in a response, whatever the default: a heartbeat's isFenced has true."""
    for name in field_names(type(message)):
        value = getattr(message, name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, Struct):
            yield from _true_fields(value)
        elif value is True and name not in _NOT_SIGNIFICANT:
            yield camel(name)


def significant_fields(message: Struct) -> Iterator[tuple[str, object]]:
    """Yield the fields that differ from their defaults as (name in JSON, value).

    Of a list this is its one element, else the names of its elements as a tuple (a topic without one by its id), or its
    size as a list of one number.
    """
    usual = with_constructor(type(message))()
    for name in field_names(type(message)):
        value = getattr(message, name)
        if name in _NOT_SIGNIFICANT or (not value and not getattr(usual, name)) or value == getattr(usual, name):
            continue
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, Struct):
            yield from significant_fields(value)
        elif value != CLUSTER_METADATA_ID:
            yield camel(name), _names(value) or f"[{len(value)}]" if isinstance(value, list) else value


def _names(elements: list[object]) -> tuple[str | bytes, ...]:
    """Return the names of all elements of a list, or nothing."""
    named = (next(filter(None, (getattr(each, name, None) for name in _NAMES)), each) for each in elements)
    found = tuple(each for each in named if isinstance(each, str | bytes))
    return found if len(found) == len(elements) else ()


def _field_text(name: str, value: object, topic_name: Callable[[bytes], str | None]) -> str:
    if value is True:
        return name
    if isinstance(value, tuple):
        text = ",".join(_text(each, topic_name) for each in value)
    else:
        text = "false" if value is False else _text(value, topic_name)
    return f"{name}={_shortened(text)}"


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def _text(value: object, topic_name: Callable[[bytes], str | None]) -> str:
    if not isinstance(value, bytes):
        return str(value)
    return topic_name(value) or text_of(value) if len(value) == 16 else f"{len(value)} bytes"


def _time(at_ms: int, since_ms: int) -> str:
    return f"{(at_ms - since_ms) / 1000:+.3f} s"


def raised(failure: str) -> str:
    """Return the exception of a traceback and the first line of its message, which may have several."""
    after_frames = failure.rpartition('\n  File "')[2].splitlines()
    return next((each for each in after_frames[1:] if each[:1].strip()), failure.strip())
