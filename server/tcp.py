"""Sockets and timer of the controller listener, its faults, and the connections to the other nodes of the quorum."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

from mockraft.kafka_api.clock import Clock
from mockraft.kafka_api.effects import ServerEffect
from mockraft.kafka_api.shell import Shell, SocketConnection
from mockraft.server.node import Node
from mockraft.server.raft.outgoing import SendToNode
from mockraft.server.toxic_links import ToxicLinks
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.server.quorum_connections import QuorumConnections


class TcpListener(Shell):
    """A node's listener on one bound socket. Use `start` and `stop` from a running event loop."""

    def __init__(self, node: Node, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(node, node.config, clock, tls)
        self.node = node
        self.faults = node.script.faults
        self.links = ToxicLinks(self, self.faults, node.config.node_id)
        self._quorum_connections: QuorumConnections | None = None
        node.now_us = clock.now_us

    def accept(self, listener: str = "") -> SocketConnection:
        """Return the protocol of a new connection."""
        return super().accept(listener or self.node.config.controller_listener_name)

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket and start ticking."""
        self.begin()
        await self.listen(bound)
        self.node.script.stubs.on_release.append(self._answer_released)
        self.loop.call_soon(self.faults.begin, self.clock.now_ms())

    async def stop(self, reason: str = "the controller stops") -> None:
        """Stop listening and close every connection; responses in progress are still written."""
        if self._answer_released in (callbacks := self.node.script.stubs.on_release):
            callbacks.remove(self._answer_released)
        if self._quorum_connections is not None:
            await self._quorum_connections.close()
        await super().stop(reason)

    def serve_node(self, node: Node) -> None:
        """Serve another node on the same port; every connection is reset, as when a process ends."""
        self.node = node
        node.now_us = self.clock.now_us
        if self._quorum_connections is not None:
            self._quorum_connections.reset()
        self.serve(node, "the controller restarts")

    def quorum_connections(self) -> QuorumConnections:
        """Connections to the other nodes of the quorum, created on first use."""
        if self._quorum_connections is None:
            from mockraft.server.quorum_connections import QuorumConnections

            config = self.node.config
            client_id = f"raft-client-{config.node_id}"
            self._quorum_connections = QuorumConnections(client_id, self._answered, config.own_client_security)
        return self._quorum_connections

    def carry_out_own(self, effect: ServerEffect) -> None:
        """Send a request to another node of the quorum."""
        assert isinstance(effect, SendToNode)
        self.quorum_connections().send(effect.outgoing)

    def _answered(self, outgoing_id: int, response: Message | None) -> None:
        now_ms = self.clock.now_ms()
        self.perform(self.node.answered(outgoing_id, response, now_ms), now_ms)

    def _answer_released(self) -> None:
        self.loop.call_soon(self.tick_now)
