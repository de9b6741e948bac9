"""The broker that sent a request."""

from __future__ import annotations

from mockraft.wire import api_keys
from mockraft.wire.message import Message


def sender(request: Message) -> int:
    """Return the id of the broker in a request (for UnregisterBroker, the one it is about); -1 if there is none."""
    broker_id: int = getattr(request, "broker_id", -1)
    if broker_id >= 0:
        return broker_id
    broker_id = getattr(request, "replica_id", -1)
    state = getattr(request, "replica_state", None)
    return broker_id if broker_id >= 0 or state is None else int(state.replica_id)


def names_sender(request: Message) -> bool:
    """Return True if the broker that a request names is its sender."""
    return request.api_key != api_keys.UNREGISTER_BROKER


def first_sender(client_id: str | None, request: Message) -> int:
    """Return the id of the broker that the first request of a connection comes from, -1 if it is unknown."""
    named = sender(request) if names_sender(request) else -1
    return named if named >= 0 else sender_by_client_id(client_id)


def sender_by_client_id(client_id: str | None) -> int:
    """Return the broker id in a client id: Kafka's are `1` to controllers and `raft-client-1` for the log."""
    number = (client_id or "").removeprefix("raft-client-")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
