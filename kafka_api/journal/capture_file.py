"""The journal as a pcapng file, as if its connections had been captured: Wireshark and spark_replay read it.

Entries that the journal has dropped are missing, and so are the tokens of SaslAuthenticate; TLS traffic is in plain.
Secrets are asterisks of the same length, unless the journal shows them.
"""

from __future__ import annotations

import io
import ipaddress
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mockraft.kafka_api.journal.exchange import ClosedConnection, Exchange
from mockraft.kafka_api.journal.journal import Entry
from mockraft.wire.pcapng import CapturedConnection, PcapngWriter

_LOOPBACK = "127.0.0.1"
_LENGTH = struct.Struct(">i")


class _Event(NamedTuple):
    """A packet of one side, or the end of a connection; within one millisecond, ids give the order."""

    at_ms: int
    entry_id: int
    kind: int
    entry: Exchange | ClosedConnection


_REQUEST, _RESPONSE, _END = 0, 1, 2


def pcapng_pieces(entries: Iterable[Entry], servers: Mapping[int, tuple[str, int]]) -> Iterator[bytes]:
    """Yield entries as packets of a pcapng file, a piece for each message, made when it is asked for.

    `servers` has the listening address of each node, as (address, port). Times are those of the controller's clock. A
    host name in place of an address becomes 127.0.0.1.
    """
    file = io.BytesIO()
    writer = PcapngWriter(file, "mockraft")
    flows: dict[tuple[int, int], CapturedConnection] = {}
    for event in sorted(_events(entries), key=lambda event: event[:3]):
        entry, time_ns = event.entry, event.at_ms * 1_000_000
        connection = (entry.node_id, entry.connection_id)
        if connection not in flows:
            host, port = servers[entry.node_id]
            flows[connection] = writer.connect(_client(entry), (_address(host), port), time_ns)
        if event.kind == _END:
            writer.close(flows.pop(connection), time_ns)
        else:
            writer.send(flows[connection], event.kind == _REQUEST, _bytes_of(event), time_ns)
        yield file.getvalue()
        file.seek(0)
        file.truncate()


def _events(entries: Iterable[Entry]) -> Iterator[_Event]:
    for entry in entries:
        if isinstance(entry, Exchange):
            entry = entry.envelope or entry
            yield _Event(entry.received_ms, entry.id, _REQUEST, entry)
            if entry.response_frame:
                yield _Event(entry.answered_ms, entry.id, _RESPONSE, entry)
        elif isinstance(entry, ClosedConnection):
            if entry.refused_frame:
                yield _Event(entry.closed_ms, entry.id, _REQUEST, entry)
            yield _Event(entry.closed_ms, entry.id, _END, entry)


def _bytes_of(event: _Event) -> bytes:
    """Return the bytes of a message, its length included."""
    entry = event.entry
    if isinstance(entry, ClosedConnection):
        return _LENGTH.pack(len(entry.refused_frame)) + entry.shown_refused_frame
    if event.kind == _RESPONSE:
        return entry.shown_response_frame
    return _LENGTH.pack(len(entry.request_frame)) + entry.shown_request_frame


def _client(entry: Exchange | ClosedConnection) -> tuple[str, int]:
    host, _, port = entry.peer_address.rpartition(":")
    return _address(host), int(port) if port.isdigit() else 1024 + entry.connection_id % 60_000


def _address(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return _LOOPBACK
