"""Requests on a SASL listener before and during authentication: KIP-43, KIP-152, KIP-368.

Source: SaslServerAuthenticator.

One object per connection, fed with request frames. Its verdict on each is data: pass it to the APIs, answer it, or
refuse the connection. Afterwards it stays only if the session expires, for re-authentication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mockraft.kafka_api import refusals
from mockraft.kafka_api.api import AnyApi, is_valid
from mockraft.kafka_api.authentication import HEALTH_CLIENT_ID
from mockraft.kafka_api.authentication.credentials import Credentials
from mockraft.kafka_api.authentication.mechanisms import AuthenticationError, BeginLogin, Mechanism, logins_with
from mockraft.kafka_api.connections import LoginAnswer, LoginResult
from mockraft.kafka_api.security import ServerSecurity
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import Request, parse_request
from mockraft.wire.errors import WireError
from mockraft.wire.java_values import in_hash_map_order
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.messages.sasl_handshake_response import SaslHandshakeResponse

if TYPE_CHECKING:
    import random

REAUTHENTICATION_PAUSE_MS: Final = 1_000
"""KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS."""


class SaslState(Enum):
    """SaslServerAuthenticator.SaslState; a failed login has none any more."""

    INITIAL_REQUEST = auto()
    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    HANDSHAKE_REQUEST = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    REAUTH_PROCESS_HANDSHAKE = auto()
    REAUTH_BAD_MECHANISM = auto()


_FIRST = frozenset({api_keys.API_VERSIONS, api_keys.SASL_HANDSHAKE})
_HANDSHAKE = frozenset({api_keys.SASL_HANDSHAKE})
TAKEN: Final[Mapping[SaslState, frozenset[int]]] = {
    SaslState.INITIAL_REQUEST: _FIRST,
    SaslState.HANDSHAKE_OR_VERSIONS_REQUEST: _FIRST,
    SaslState.HANDSHAKE_REQUEST: _HANDSHAKE,
    SaslState.REAUTH_PROCESS_HANDSHAKE: _HANDSHAKE,
    SaslState.AUTHENTICATE: frozenset({api_keys.SASL_AUTHENTICATE}),
}
"""APIs accepted in each restricted state."""


_PASSES: Final = LoginResult(passes=True)


class SaslExchange:
    """A connection's login.

    Once complete, `principal` is `User:name`; `session_ends_ms` is None for a session without end.
    """

    def __init__(self, security: ServerSecurity, apis: Mapping[int, AnyApi], begin_login: BeginLogin) -> None:
        self.state = SaslState.INITIAL_REQUEST
        self.principal = ""
        self.token_authenticated = False
        self.session_ends_ms: int | None = None
        self._security = security
        self._apis = apis
        self._begin_login = begin_login
        self._name = ""
        self._mechanism: Mechanism | None = None
        self._has_headers = False
        self._reauthenticates = False
        self._reauthentication_began_ms: int | None = None

    def receive(self, frame: bytes, now_ms: int) -> LoginResult:
        """Judge the connection's next frame."""
        if self.state is SaslState.COMPLETE:
            if not self._begins_again(frame, now_ms):
                return self._in_session(now_ms)
            self._reauthenticates = True
            self._reauthentication_began_ms = now_ms
            self._has_headers = False
            self.state = SaslState.REAUTH_PROCESS_HANDSHAKE
        if self.state is SaslState.REAUTH_BAD_MECHANISM:
            return LoginResult(failure=f"refused: re-authentication with another mechanism than {self._name}")
        if self.state is SaslState.AUTHENTICATE and not self._has_headers:
            return self._bare_token(frame, now_ms)
        try:
            request = parse_request(frame)
            if request.api_key not in TAKEN[self.state]:
                return self._out_of_turn(request)
            api = self._apis[request.api_key]
            if request.api_key == api_keys.API_VERSIONS:
                return self._versions(api, request)
            body = _body(api, request)
        except WireError as wrong:
            return LoginResult(failure=f"refused: no request with which one logs in ({self.state.name}): {wrong}")
        if request.api_key == api_keys.SASL_HANDSHAKE:
            return self._handshake(request, body, now_ms)
        return self._token(request, body, now_ms)

    def _begins_again(self, frame: bytes, now_ms: int) -> bool:
        """Return True for the handshake of a re-authentication (KafkaChannel.maybeBeginServerReauthentication)."""
        began_ms = self._reauthentication_began_ms
        return (
            int.from_bytes(frame[:2], "big") == api_keys.SASL_HANDSHAKE
            and self.session_ends_ms is not None
            and (began_ms is None or now_ms - began_ms >= REAUTHENTICATION_PAUSE_MS)
        )

    def _in_session(self, now_ms: int) -> LoginResult:
        if self.session_ends_ms is not None and now_ms > self.session_ends_ms:
            return LoginResult(failure=f"refused: the session of {self.principal} is over", expired=True)
        return _PASSES

    def _versions(self, api: AnyApi, request: Request) -> LoginResult:
        """Leave ApiVersions to the API; after a valid one, the handshake must follow."""
        self.state = SaslState.HANDSHAKE_OR_VERSIONS_REQUEST
        if request.api_version <= api.max_version:
            body = _body(api, request)
            if is_valid(body, request.api_version):
                self.state = SaslState.HANDSHAKE_REQUEST
        return _PASSES

    def _handshake(self, request: Request, body: SaslHandshakeRequest, now_ms: int) -> LoginResult:
        enabled = [name for name, _ in in_hash_map_order(dict.fromkeys(self._security.sasl_enabled_mechanisms))]
        response = SaslHandshakeResponse(mechanisms=enabled)
        answer = LoginAnswer(request, body, response)
        self._has_headers = request.api_version >= 1
        if body.mechanism not in enabled:
            response.error_code = error_codes.UNSUPPORTED_SASL_MECHANISM
            # Kafka's network thread detects this itself the second time, and sends nothing.
            return LoginResult(
                answer=None if self._reauthenticates else answer,
                failure=f"refused: SASL mechanism {body.mechanism!r} is not enabled",
            )
        if self._reauthenticates and body.mechanism != self._name:
            self.state = SaslState.REAUTH_BAD_MECHANISM
            return LoginResult(answer=answer)
        self._name = body.mechanism
        self._mechanism = self._begin_login(self._name, now_ms)
        self.state = SaslState.AUTHENTICATE
        return LoginResult(answer=answer)

    def _token(self, request: Request, body: SaslAuthenticateRequest, now_ms: int) -> LoginResult:
        client_message = SaslAuthenticateResponse(error_code=error_codes.SASL_AUTHENTICATION_FAILED)
        answer = LoginAnswer(request, body, client_message)
        try:
            client_message.auth_bytes = self._evaluate(body.auth_bytes)
        except AuthenticationError as denied:
            again = "re-authentication" if self._reauthenticates else "authentication"
            nothing = (
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism {self._name}"
            )
            client_message.error_message = denied.client_message or nothing
            return LoginResult(answer=answer, failure=f"refused: {denied}")
        client_message.error_code = error_codes.NONE
        if not self._is_complete:
            return LoginResult(answer=answer)
        client_message.session_lifetime_ms = self._begin_session(now_ms)
        return LoginResult(answer=answer, is_complete=True)

    def _bare_token(self, frame: bytes, now_ms: int) -> LoginResult:
        """Process a token without header, as sent after a handshake of version 0."""
        try:
            token = self._evaluate(frame)
        except AuthenticationError as denied:
            return LoginResult(failure=f"refused: {denied}")
        is_complete = self._is_complete
        if is_complete:
            self._begin_session(now_ms)
        return LoginResult(token=token, is_complete=is_complete)

    @property
    def _is_complete(self) -> bool:
        return self._mechanism is not None and self._mechanism.is_complete

    def _evaluate(self, token: bytes) -> bytes:
        assert self._mechanism is not None
        answered = self._mechanism.evaluate(token)
        if self._reauthenticates and self._is_complete and self.principal != f"User:{self._mechanism.user}":
            was, wanted = self.principal.replace(":", ".", 1), f"User.{self._mechanism.user}"
            client_message = f"Cannot change principals during re-authentication from {was}: {wanted}"
            raise AuthenticationError(client_message, client_message)
        return answered

    def _begin_session(self, now_ms: int) -> int:
        """Return principal and session lifetime (ms, 0: unlimited): token expiry and `connections.max.reauth.ms`."""
        log_in = self._mechanism
        assert log_in is not None
        self._mechanism = None
        self.state = SaslState.COMPLETE
        self.principal = f"User:{log_in.user}"
        self.token_authenticated = log_in.is_token
        security = self._security
        reauth_ms = security.mechanisms_max_reauth_ms.get(self._name, security.connections_max_reauth_ms)
        lifetimes_ms = [reauth_ms] if reauth_ms > 0 else []
        if log_in.credential_expiration_ms is not None:
            lifetimes_ms.append(log_in.credential_expiration_ms - now_ms)
        if not lifetimes_ms:
            self.session_ends_ms = None
            return 0
        lifetime_ms = max(0, min(lifetimes_ms))
        self.session_ends_ms = now_ms + lifetime_ms
        return lifetime_ms

    def _out_of_turn(self, request: Request) -> LoginResult:
        name = api_keys.name(request.api_key)
        if self.state is SaslState.HANDSHAKE_REQUEST and request.client_id == HEALTH_CLIENT_ID:
            return LoginResult(failure=f"a health check: {name} before login", refused=False)
        security = self._security
        why = refusals.without_sasl(name, security.security_protocol, security.sasl_enabled_mechanisms)
        failure = f"refused: {why} (state {self.state.name})"
        api = self._apis.get(request.api_key)
        if self.state is not SaslState.AUTHENTICATE or api is None:
            return LoginResult(failure=failure)
        client_message = f"Unexpected Kafka request of type {_java_name(name)} during SASL authentication."
        body = _body(api, request)
        return LoginResult(
            answer=LoginAnswer(request, body, api.error(body, error_codes.ILLEGAL_SASL_STATE, client_message)),
            failure=failure,
        )


def exchanges(
    security: ServerSecurity, apis: Mapping[int, AnyApi], credentials: Credentials, rng: random.Random
) -> Callable[[], SaslExchange]:
    """Return what makes the exchange of a new connection; `rng` makes nonces, which must not be predictable."""
    return partial(SaslExchange, security, apis, logins_with(security, credentials, rng))


def _body(api: AnyApi, request: Request) -> Any:
    """Decode a request with the class of the API, which may be an overlay's."""
    if not api.min_version <= request.api_version <= api.max_version:
        raise WireError(f"{api_keys.name(request.api_key)} has no version {request.api_version} here")
    return api.request.read_from(request.frame, request.api_version, request.body_offset)[0]


def _java_name(name: str) -> str:
    """Return `CreateTopics` as CREATE_TOPICS."""
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name).lstrip("_")
