"""A Kafka client connection over asyncio: the ApiVersions handshake, requests with timeouts, responses in order.

Like Kafka's `NetworkClient`, it sends its newest ApiVersions first and closes when a response is late or malformed.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, overload

from mockraft.wire import api_keys, error_codes, messages, sasl
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import (
    API_VERSIONS_MAX,
    SOFTWARE_NAME,
    SOFTWARE_VERSION,
    FrameReader,
    read_response_body,
    version_for,
    worded,
    write_request,
)
from mockraft.wire.errors import AuthenticationFailedError as AuthenticationFailedError
from mockraft.wire.errors import DisconnectedError as DisconnectedError
from mockraft.wire.errors import RequestTimedOutError as RequestTimedOutError
from mockraft.wire.errors import SecurityMismatchError, WireError
from mockraft.wire.errors import UnsupportedVersionError as UnsupportedVersionError
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.response_header import ResponseHeader
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest

if TYPE_CHECKING:
    from mockraft.wire.message import Message, MessageLookup, RequestMessage

R = TypeVar("R")
_CONNECT_TIMEOUT_S = 10
_SESSION_PART_USED = 0.85
"""Fraction of the session lifetime after which Kafka's clients reauthenticate: 85 to 95 % (SaslClientAuthenticator)."""


class _Call:
    """A minimal future without a task: it calls its callback at once."""

    __slots__ = ("answered", "called")

    def __init__(self, answered: Callable[[object], None]) -> None:
        self.answered = answered
        self.called = False

    def done(self) -> bool:
        return self.called

    def set_result(self, outcome: object) -> None:
        self.called = True
        self.answered(outcome)

    set_exception = set_result

    def exception(self) -> None:
        """Do nothing; part of the future's interface."""


class _Pending(NamedTuple):
    correlation_id: int
    api_key: int
    api_version: int
    answer: asyncio.Future[Any] | _Call
    wants_frame: bool = False


class KafkaConnection(asyncio.Protocol):
    """A connection, opened by `connect` or `open`; `api_versions` maps API key to the (min, max) offered, once known.

    `on_lost` is called once when no more requests can be sent. `messages` may be an Overlay, to use a proposal's
    messages. `correlation_ids` is shared by the connections of one Kafka `NetworkClient`; by default each has its own.
    """

    def __init__(
        self,
        client_id: str | None,
        request_timeout_ms: int = 30_000,
        correlation_ids: Iterator[int] | None = None,
        messages: MessageLookup = messages,
    ) -> None:
        self.client_id = client_id
        self.messages = messages
        self.request_timeout_ms = request_timeout_ms
        self._answers = 0
        self.api_versions: dict[int, tuple[int, int]] = {}
        self.lost: BaseException | None = None
        self._frames = FrameReader()
        self._pending: deque[_Pending] = deque()
        self._transport: asyncio.Transport | None = None
        self._closed = asyncio.get_running_loop().create_future()
        self.on_lost: Callable[[], None] | None = None
        # NetworkClient numbers the first request before it connects, so the handshake carries a higher number.
        self._correlation_ids = itertools.count() if correlation_ids is None else correlation_ids
        self._first_id: int | None = next(self._correlation_ids)
        self._login: sasl.SaslLogin | None = None
        self._logging_in = asyncio.Lock()
        self._session_over_s: float | None = None

    async def open(
        self, host: str, port: int, *, handshake: bool = True, security: ClientSecurity | None = None
    ) -> None:
        """Connect, authenticate if `security` requires it and, unless disabled, do the ApiVersions handshake.

        Raises DisconnectedError if nothing listens or connecting takes 10 s, AuthenticationFailedError, also if TLS
        fails, and the errors of :meth:`handshake`.
        """
        tls, login = (None, None) if security is None else (security.tls, security.login)
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(lambda: self, host, port, ssl=tls)
        except ssl.SSLError as error:
            raise AuthenticationFailedError(f"TLS with {host}:{port} failed: {error}") from error
        except OSError as error:  # TimeoutError is one
            why = "timed out" if isinstance(error, TimeoutError) else str(error)
            if not why:
                about = f"{host}:{port}: closed by the other side in TLS's handshake; does it have TLS?"
                raise SecurityMismatchError(f"cannot connect to {about}") from error
            raise DisconnectedError(f"cannot connect to {host}:{port}: {why}") from error
        try:
            if login is not None:
                await self.authenticate(login)
            if handshake:
                await self.handshake()
        except BaseException as error:
            await self.close()
            if tls is None and type(error) is DisconnectedError:
                why = "before it answered ApiVersions; does it expect TLS?"
                raise SecurityMismatchError(f"{error}, {why}") from error
            raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (called by asyncio)."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Match each complete frame with the oldest request (called by asyncio)."""
        try:
            for frame in self._frames.receive_data(data):
                self._receive_answer(frame)
            if self._frames.failure is not None:
                raise self._frames.failure
        except WireError as error:
            self._fail(error)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Fail every pending request (called by asyncio)."""
        why = f"connection lost: {exc or 'closed by the other side'}"
        if self._pending and self._login is None and self.api_versions and self._answers == 1:
            self._fail(SecurityMismatchError(f"{why}, at the first request after ApiVersions; does it expect SASL?"))
        else:
            self._fail(DisconnectedError(why))
        if not self._closed.done():
            self._closed.set_result(None)

    @property
    def is_open(self) -> bool:
        """True while requests can be sent."""
        return self.lost is None

    def version_for(self, request: type[Message] | Message) -> int:
        """Return the newest version of this request that both sides support.

        Raises UnsupportedVersionError.
        """
        return version_for(request, self.api_versions)

    @overload
    async def send(
        self, request: RequestMessage[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R: ...
    @overload
    async def send(self, request: Message, *, version: int | None = None, timeout_ms: int | None = None) -> Message: ...
    async def send(self, request: Any, *, version: int | None = None, timeout_ms: int | None = None) -> Any:
        """Send one request message and return its response message.

        `version` defaults to :meth:`version_for`. Several requests may be in flight; responses arrive in order.
        Raises DisconnectedError, RequestTimedOutError, UnsupportedVersionError, or WireError for a malformed response.
        """
        if self._login is None:
            return await self._exchange(request, version, timeout_ms)
        # Nothing may come between the requests of a log-in; what is written before or after may.
        async with self._logging_in:
            if self._session_over_s is not None and asyncio.get_running_loop().time() >= self._session_over_s:
                await self._log_in(self._login)
            pending = self._sent(request, version)
        return await self._answer(pending, timeout_ms)

    async def send_for_frame(
        self, request: Message, *, version: int, correlation_id: int | None = None, timeout_ms: int | None = None
    ) -> bytes:
        """Send like :meth:`send`, but return the response frame undecoded and without its length.

        `correlation_id` replaces the connection's own next one.
        """
        async with self._logging_in:
            if self._login and self._session_over_s and asyncio.get_running_loop().time() >= self._session_over_s:
                await self._log_in(self._login)
            pending = self._write(request, version, correlation_id=correlation_id, wants_frame=True)
        return cast(bytes, await self._answer(pending, timeout_ms))

    def send_soon(self, request: Message, answered: Callable[[Any], None], version: int | None = None) -> bool:
        """Send without a task and call `answered` with the response, or with the error :meth:`send` would raise.

        No time limit: the caller breaks the connection off when it has waited for too long. Return False if a write is
        not enough: the connection is closed, or reauthenticates from time to time. Raises UnsupportedVersionError.
        """
        if self.lost is not None or self._login is not None:
            return False
        if self.messages is not messages:
            request = worded(request, self.messages)
        self._write(request, self.version_for(request) if version is None else version, _Call(answered))
        return True

    async def authenticate(self, login: sasl.SaslLogin) -> None:
        """Authenticate, first thing on a connection to a SASL listener; later sessions are renewed automatically.

        Raises AuthenticationFailedError, and the errors of :meth:`send`.
        """
        await self.handshake()
        await self._log_in(login)
        self._login = login

    async def _log_in(self, login: sasl.SaslLogin) -> None:
        handshake = await self._exchange(SaslHandshakeRequest(mechanism=login.mechanism), 1, None)
        if handshake.error_code != error_codes.NONE:
            raise self._authentication_failed(
                f"{error_codes.name(handshake.error_code)}, it takes {', '.join(handshake.mechanisms)}"
            )
        tokens = sasl.tokens(login, secrets.token_urlsafe(18))
        token = next(tokens)
        while True:
            request = SaslAuthenticateRequest(auth_bytes=token)
            response = await self._exchange(request, self.version_for(request), None)
            if response.error_code != error_codes.NONE:
                raise self._authentication_failed(str(response.error_message))
            try:
                token = tokens.send(response.auth_bytes)
            except StopIteration:
                break
            except sasl.SaslError as error:
                raise self._authentication_failed(str(error)) from error
        lifetime_ms = response.session_lifetime_ms
        now_s = asyncio.get_running_loop().time()
        self._session_over_s = now_s + lifetime_ms / 1000 * _SESSION_PART_USED if lifetime_ms else None

    def _authentication_failed(self, why: str) -> AuthenticationFailedError:
        error = AuthenticationFailedError(f"authentication failed: {why}")
        self._fail(error)
        return error

    async def _exchange(self, request: Message, version: int | None, timeout_ms: int | None) -> Any:
        return await self._answer(self._sent(request, version), timeout_ms)

    def _sent(self, request: Message, version: int | None) -> _Pending:
        if self.messages is not messages:
            request = worded(request, self.messages)
        return self._write(request, self.version_for(request) if version is None else version)

    async def _answer(self, pending: _Pending, timeout_ms: int | None) -> Any:
        timeout_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await cast(asyncio.Future[Any], pending.answer)
        except TimeoutError:
            late = RequestTimedOutError(f"no answer to {api_keys.name(pending.api_key)} within {timeout_ms} ms")
            self._fail(late)
            raise late from None

    async def handshake(self) -> None:
        """Exchange ApiVersions, first thing on the connection.

        Raises the errors of :meth:`send`; UnsupportedVersionError if the server refuses every version.
        """
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        response = await self._exchange(request, API_VERSIONS_MAX, None)
        if response.error_code == error_codes.UNSUPPORTED_VERSION:
            offered = {api.api_key: api.max_version for api in response.api_keys}
            version = min(offered.get(api_keys.API_VERSIONS, 0), API_VERSIONS_MAX - 1)
            response = await self._exchange(request, version, None)
        if response.error_code != error_codes.NONE:
            raise UnsupportedVersionError(f"ApiVersions was refused: {error_codes.name(response.error_code)}")
        self.api_versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    def break_off(self) -> None:
        """Abort the connection at once, as a network failure does. Pending requests fail with DisconnectedError."""
        self._fail(DisconnectedError("broken off by this side"))
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Close and wait until the socket is closed. Pending requests get DisconnectedError. Safe to call twice."""
        self._fail(DisconnectedError("closed by this side"))
        if self._transport is not None:
            await asyncio.shield(self._closed)

    def _write(
        self,
        request: Message,
        version: int,
        call: _Call | None = None,
        *,
        correlation_id: int | None = None,
        wants_frame: bool = False,
    ) -> _Pending:
        if self.lost is not None:
            raise DisconnectedError(f"the connection is closed: {self.lost}") from self.lost
        if correlation_id is None:
            correlation_id = self._next_id(request.api_key)
        data = write_request(request, version, correlation_id, self.client_id)
        answer = asyncio.get_running_loop().create_future() if call is None else call
        pending = _Pending(correlation_id, request.api_key, version, answer, wants_frame)
        self._pending.append(pending)
        assert self._transport is not None
        self._transport.write(data)
        return pending

    def _next_id(self, api_key: int) -> int:
        if self._first_id is not None and api_key != api_keys.API_VERSIONS:
            correlation_id, self._first_id = self._first_id, None
            return correlation_id
        return next(self._correlation_ids)

    def _receive_answer(self, frame: bytes) -> None:
        if not self._pending:
            raise WireError("an answer came that nothing asked for")
        pending = self._pending.popleft()
        self._answers += 1
        try:
            _verify_correlation(frame, pending)
            response = frame if pending.wants_frame else _read_response(frame, pending, self.messages)
        except WireError as error:
            if not pending.answer.done():
                pending.answer.set_exception(error)
            raise
        if not pending.answer.done():
            pending.answer.set_result(response)

    def _fail(self, reason: BaseException) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        # A request that nobody has read yet would keep a close waiting for ever.
        transport, was_idle = self._transport, not self._pending
        while self._pending:
            answer = self._pending.popleft().answer
            if not answer.done():
                answer.set_exception(reason)
                answer.exception()  # a caller that gave up must not leave "exception was never retrieved" behind
        if transport is not None:
            transport.close() if was_idle else transport.abort()
        if self.on_lost is not None:
            self.on_lost()


def _verify_correlation(frame: bytes, pending: _Pending) -> None:
    if len(frame) < 4:
        raise WireError(f"a response of {len(frame)} bytes has no correlation id")
    correlation_id = int.from_bytes(frame[:4], signed=True)
    if correlation_id != pending.correlation_id:
        raise WireError(f"correlation id {correlation_id} came for request {pending.correlation_id}")


def _read_response(frame: bytes, pending: _Pending, messages: MessageLookup) -> Any:
    offset = 4
    if messages.response_header_version(pending.api_key, pending.api_version) >= 1:
        _, offset = ResponseHeader.read_from(frame, 1, 0)
    return read_response_body(frame, offset, pending.api_key, pending.api_version, messages)


async def connect(
    host: str,
    port: int,
    *,
    client_id: str | None = None,
    messages: MessageLookup = messages,
    handshake: bool = True,
    security: ClientSecurity | None = None,
) -> KafkaConnection:
    """Return a new connection; see :meth:`KafkaConnection.open`."""
    connection = KafkaConnection(client_id, messages=messages)
    await connection.open(host, port, handshake=handshake, security=security)
    return connection
