"""Effects that a simulated broker returns for its shell to carry out, and the events that the shell feeds back.

Outgoing traffic is in messages: handshakes, TLS, SASL, correlation ids and bytes belong to the shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from mockraft.brokers.lifecycle import BrokerState, End
from mockraft.kafka_api.effects import Effect as ListenerEffect
from mockraft.wire.message import Message

Versions: TypeAlias = Mapping[int, tuple[int, int]]
"""The (min, max) versions that a server offers, by API key; empty without a handshake."""


class Link(NamedTuple):
    """The name of one connection: its purpose, its endpoint, and the handshake.

    `purpose` separates connections to the same endpoint, as Kafka's brokers have one per channel. Links of one client
    id with `shares_ids` number their requests together, as the connections of one NetworkClient do. `timeout_ms` is for
    each request of the handshake. `to_broker`: it has the security of the brokers' listeners, not the controllers'.
    """

    purpose: str
    client_id: str
    host: str
    port: int
    timeout_ms: int
    handshake: bool = True
    shares_ids: bool = False
    to_broker: bool = False


# Effects, carried out in order.


class Connect(NamedTuple):
    """Open this connection; the event is Opened or NotOpened."""

    link: Link


class SendRequest(NamedTuple):
    """Send a request over an open connection; the event is Answered or Failed. Version None: the newest of both."""

    request_id: int
    link: Link
    request: Message
    version: int | None


class Disconnect(NamedTuple):
    """Close a connection, or stop opening it. No event follows."""

    link: Link


class BreakOff(NamedTuple):
    """Cut a connection as a network failure does: Failed and Closed follow."""

    link: Link


class StateChanged(NamedTuple):
    """The lifecycle has reached this state."""

    state: BrokerState


class Stopped(NamedTuple):
    """The broker has ended and does nothing more of its own accord."""

    end: End


class ToClient(NamedTuple):
    """An effect on an accepted connection."""

    effect: ListenerEffect


Effect: TypeAlias = Connect | SendRequest | Disconnect | BreakOff | StateChanged | Stopped | ToClient


# Events.


class Opened(NamedTuple):
    """A connection is open; `versions` are those that the server offers."""

    link: Link
    versions: Versions


class NotOpened(NamedTuple):
    """A connection could not be opened."""

    link: Link
    error: Exception


class Answered(NamedTuple):
    """The response to a request."""

    request_id: int
    response: Message


class Failed(NamedTuple):
    """A request without a response: DisconnectedError, UnsupportedVersionError, or WireError for a malformed one."""

    request_id: int
    error: Exception


class Closed(NamedTuple):
    """A connection was closed by the other side, or broke."""

    link: Link


Event: TypeAlias = Opened | NotOpened | Answered | Failed | Closed


class ClientConnected(NamedTuple):
    """A client was accepted on the listener of this name."""

    connection_id: int
    listener_name: str
    client_address: str


class ClientSecured(NamedTuple):
    """A client has completed the TLS handshake, with this certificate (DER) if it has one."""

    connection_id: int
    certificate: bytes | None


class ClientSent(NamedTuple):
    """A client sent bytes; if they are late its requests wait for their turn."""

    connection_id: int
    data: bytes
    is_late: bool = False


class ClientRead(NamedTuple):
    """Everything that an AwaitSent waited for was written."""

    connection_id: int


class ClientClosed(NamedTuple):
    """An accepted connection must be closed for a reason that its socket has (it is idle)."""

    connection_id: int
    kind: str
    reason: str


class ClientGone(NamedTuple):
    """An accepted connection was closed."""

    connection_id: int
    reason: str


ClientEvent: TypeAlias = ClientConnected | ClientSecured | ClientSent | ClientRead | ClientClosed | ClientGone
