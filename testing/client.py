"""One request to a controller that runs here, as a client would ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mockraft.server.double import Double
from mockraft.wire import kio_entities
from mockraft.wire.client import connect
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.kafka_api.journal.exchange import ResponseT as A
    from mockraft.wire.message import RequestMessage


async def ask(
    double: Double,
    request: RequestMessage[A] | kio_entities.KioEntity,
    version: int | None = None,
    client_id: str | None = None,
    node: int | None = None,
    timeout_s: float = 30,
) -> A:
    """Send a request on a connection of its own, without a handshake, and return the response.

    It goes to the active controller, or to the `node` with this id, in `version` or its newest stable version. A kio
    entity is answered with a kio entity. DisconnectedError when the connection ends or no response comes in time,
    TypeError for an object that is no message, WireError for a message that cannot be encoded or decoded, KeyError for
    a node that does not run.
    """
    is_kio = kio_entities.is_kio(request)
    message, entity_version = kio_entities.from_kio(request) if is_kio else (request, None)
    if not isinstance(message, Message):
        raise TypeError(f"ask takes a request message, such as BrokerHeartbeatRequest(…), not {message!r}")
    newest = message.max_version - (1 if message.latest_version_unstable else 0)
    version = next(each for each in (version, entity_version, newest) if each is not None)
    nodes = double.nodes()
    running = nodes[node] if node is not None else max(nodes.values(), key=lambda each: each.controller.epoch)
    config = running.config
    connection = await connect(
        config.voter_host,
        config.voter_port,
        client_id=client_id,
        handshake=False,
        messages=running.node.messages,
        security=config.own_client_security,
    )
    try:
        response = await connection.send(message, version=version, timeout_ms=round(timeout_s * 1000))
    finally:
        await connection.close()
    return cast("A", kio_entities.to_kio(response, version) if is_kio else response)
