"""A SASL listener without sockets, and the client's side of logging in."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.kafka_api.effects import AwaitSent, Close, Effect, Send
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.node import Node
from mockraft.wire import sasl
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.scram import ScramUser

from ..conftest import START_MS, controller_in_memory

DELAY_MS = 100
ALL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Listener:
    """A node behind a SASL listener, with users alice (PLAIN) and bob (SCRAM, both mechanisms)."""

    def __init__(self, **options: Any) -> None:
        config = ControllerConfig(
            **{
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_enabled_mechanisms": ALL,
                "plain_users": {"alice": "alice-secret", "ärger": "€uro"},
                "scram_users": tuple(ScramUser("bob", "bob-secret", name) for name in ALL[1:]),
                **options,
            }
        )
        self.now_ms = START_MS
        self.node = Node(controller_in_memory(config), APIS, rng=random.Random(2))
        self._connections_made = 0

    def connect(self, host: str = "127.0.0.1") -> "Peer":
        self._connections_made += 1
        peer = Peer(self, self._connections_made)
        peer.take(self.node.connected(peer.connection_id, f"{host}:{40_000 + peer.connection_id}", self.now_ms))
        return peer

    def advance(self, ms: int) -> list[Effect]:
        self.now_ms += ms
        return self.node.tick(self.now_ms)


class Peer:
    """One connection's other end."""

    def __init__(self, listener: Listener, connection_id: int) -> None:
        self.listener = listener
        self.connection_id = connection_id
        self.closed: str | None = None
        self.data = b""
        self._frames = FrameReader()
        self._correlation_id = 0

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if effect.connection_id == self.connection_id:
                if isinstance(effect, Send):
                    self.data += effect.data
                elif isinstance(effect, Close):
                    self.closed = effect.reason
                elif isinstance(effect, AwaitSent):
                    self.take(self.listener.node.sent(self.connection_id, self.listener.now_ms))

    def send(self, data: bytes) -> None:
        self.take(self.listener.node.step(self.connection_id, data, self.listener.now_ms))

    def wait(self, ms: int) -> None:
        self.take(self.listener.advance(ms))

    def frames(self) -> list[bytes]:
        data, self.data = self.data, b""
        return self._frames.receive_data(data)

    def request(self, message: Any, version: int) -> None:
        self._correlation_id += 1
        self.send(write_request(message, version, self._correlation_id, "test"))

    def response(self, message: Any, version: int) -> Any:
        (frame,) = self.frames()
        return read_response(frame, message.api_key, version)

    def ask(self, message: Any, version: int) -> Any:
        self.request(message, version)
        return self.response(message, version)

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def refused(self, token: bytes) -> Any:
        """The response to a token that is wrong; it comes late."""
        self.request(SaslAuthenticateRequest(auth_bytes=token), 2)
        self.wait(DELAY_MS)
        return self.response(SaslAuthenticateRequest(), 2)

    def log_in(self, mechanism: str, user: str, password: str, *, is_token: bool = False) -> Any:
        """The last SaslAuthenticate's response; the server's proof is checked."""
        assert self.handshake(mechanism).error_code == 0
        login = sasl.tokens(sasl.SaslLogin(mechanism, user, password, is_token), "a-nonce")
        token = next(login)
        while True:
            response = self.authenticate(token)
            if response.error_code:
                return response
            try:
                token = login.send(response.auth_bytes)
            except StopIteration:
                return response

    def versions(self, version: int = 4, name: str = "test") -> Any:
        return self.ask(ApiVersionsRequest(client_software_name=name, client_software_version="1"), version)


@pytest.fixture
def make_listener() -> Callable[..., Listener]:
    """`make_listener(**config options)`."""
    return Listener


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def peer(listener: Listener) -> Peer:
    return listener.connect()
