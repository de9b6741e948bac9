"""The login of a connection, as a listener sees it: its verdict on each frame is data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from mockraft.wire.connection import Request
    from mockraft.wire.message import Message


class LoginAnswer(NamedTuple):
    """A response in Kafka's form."""

    request: Request
    body: Message
    response: Message


class LoginResult(NamedTuple):
    """Result of a frame of a login.

    `passes`: the API answers it. Else `answer` or the bare bytes of `token` are sent, if any. With a `failure` (the
    real reason, for the journal) the connection is closed after that; `expired`, at once; without `refused` that is
    no surprise. `is_complete`: the client is authenticated from now on.
    """

    passes: bool = False
    answer: LoginAnswer | None = None
    token: bytes | None = None
    failure: str | None = None
    expired: bool = False
    refused: bool = True
    is_complete: bool = False


class Login(Protocol):
    """A connection's login. Once complete, `principal` is `User:name`.

    `session_ends_ms` is None for a session without end.
    """

    principal: str
    token_authenticated: bool
    session_ends_ms: int | None

    def receive(self, frame: bytes, now_ms: int) -> LoginResult:
        """Judge the connection's next frame."""
