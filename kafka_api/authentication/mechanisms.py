"""Server side of PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628).

Source: PlainSaslServer, ScramSaslServer, OAuthBearerSaslServer.

A mechanism takes the client's tokens one by one and returns the responses. When it `is_complete`, `user` is the
authenticated user. No sockets, no time: the exchange around it is `sasl_exchange`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from mockraft.kafka_api.authentication.bearer_tokens import InvalidTokenError, TokenRules
from mockraft.kafka_api.authentication.credentials import Credentials, password_is
from mockraft.wire import scram
from mockraft.wire.sasl import OAUTHBEARER, PLAIN
from mockraft.wire.scram import ScramCredential

if TYPE_CHECKING:
    import random

    from mockraft.kafka_api.security import ServerSecurity


class AuthenticationError(Exception):
    """Reason for a failed login. `client_message` is what the client gets, None for a generic text."""

    def __init__(self, reason: str, client_message: str | None = None) -> None:
        super().__init__(reason)
        self.client_message = client_message


class Mechanism:
    """One login in progress; the base of all mechanisms.

    `is_token`: it uses a delegation token, which is valid until `credential_expiration_ms` (since the epoch).
    """

    user = ""
    is_complete = False
    is_token = False
    credential_expiration_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return the response to the client's next token; AuthenticationError ends the login."""
        raise AssertionError(f"{type(self).__name__} takes no token")


BeginLogin = Callable[[str, int], Mechanism]
"""Begins a login with the mechanism of a name, at a time in milliseconds since the epoch."""


def logins_with(security: ServerSecurity, credentials: Credentials, rng: random.Random) -> BeginLogin:
    """Return what begins a listener's logins. Raises ValueError as `read_token_rules`."""
    rules = security.read_token_rules() if OAUTHBEARER in security.sasl_enabled_mechanisms else TokenRules()

    def begin(name: str, now_ms: int) -> Mechanism:
        if name == PLAIN:
            return Plain(security.plain_users)
        return OAuthBearer(rules, now_ms) if name == OAUTHBEARER else Scram(name, credentials, rng)

    return begin


class Plain(Mechanism):
    """One token: authorization id (empty or the user), name and password, separated by zero bytes."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def evaluate(self, token: bytes) -> bytes:
        """Check name and password."""
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            _deny(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            _deny("Authentication failed: username not specified")
        if not password:
            _deny("Authentication failed: password not specified")
        known = password_is(self._users, user, password)
        if not known:
            reason = f"PLAIN: {'no user' if known is None else 'wrong password of'} {user!r}"
            raise AuthenticationError(reason, "Authentication failed: Invalid username or password")
        _check_authorization_id(authorization_id, user)
        self.user = user
        self.is_complete = True
        return b""


_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"

_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_SASL_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?:{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)

CLIENT_FIRST_BYTES_MAX = 8_192
"""Limit on the data kept between the two messages; Java's client sends about forty bytes and the name."""

_NONCE_BITS = 130
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Scram(Mechanism):
    """Two tokens: name and nonce, then the client's proof; `tokenauth=true` logs in with a delegation token."""

    def __init__(self, name: str, credentials: Credentials, rng: random.Random) -> None:
        self._name = name
        self._hash_name = scram.HASHES[name]
        self._credentials = credentials
        self._rng = rng
        self._credential: ScramCredential | None = None
        self._exchanged = ""
        self._nonce = ""

    def evaluate(self, token: bytes) -> bytes:
        """Answer the first message with salt and iterations, the last with the server's proof."""
        return self._first(token) if self._credential is None else self._final(token, self._credential)

    def _first(self, token: bytes) -> bytes:
        if len(token) > CLIENT_FIRST_BYTES_MAX:
            raise AuthenticationError(f"{self._name}: the first message has {len(token)} bytes")
        message = _matched(_CLIENT_FIRST, token, f"{self._name}: the client's first message is malformed")
        try:
            name = scram.name_of(message["name"])
        except ValueError as error:
            raise AuthenticationError(f"{self._name}: {error}") from error
        extensions = dict(part.split("=", 1) for part in message["extensions"].split(",") if part)
        credential = self._found(name, extensions.get("tokenauth", "").lower() == "true")
        _check_authorization_id(message["authorization_id"] or "", name)
        if credential.iterations < scram.ITERATIONS_MIN:
            raise AuthenticationError(f"{self._name}: {credential.iterations} iterations of {name!r} are too few")
        self._credential = credential
        self._nonce = message["nonce"] + self._server_nonce()
        answer = f"r={self._nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}"
        self._exchanged = f"{message['bare']},{answer}"
        return answer.encode()

    def _found(self, name: str, is_token: bool) -> ScramCredential:
        if not is_token:
            self.user = name
            credential = self._credentials.scram(self._name, name)
            if credential is None:
                raise AuthenticationError(f"{self._name}: no user {name!r}")
            return credential
        token = self._credentials.token(self._name, name)
        if token is None:
            raise AuthenticationError(f"{self._name}: no delegation token {name!r}")
        self.is_token = True
        self.user = token.owner
        self.credential_expiration_ms = token.expiration_timestamp
        return token.credential

    def _final(self, token: bytes, credential: ScramCredential) -> bytes:
        message = _matched(_CLIENT_FINAL, token, f"{self._name}: the client's last message is malformed")
        if message["nonce"] != self._nonce:
            raise AuthenticationError(f"{self._name}: wrong nonce of {self.user!r}")
        auth_message = f"{self._exchanged},{message['without_proof']}".encode()
        proof = base64.b64decode(message["proof"])
        expected = scram.signature(self._hash_name, credential.stored_key, auth_message)
        client_key = scram.xor(expected, proof) if len(proof) == len(expected) else b""
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise AuthenticationError(f"{self._name}: wrong password of {self.user!r}")
        self.is_complete = True
        signature = scram.signature(self._hash_name, credential.server_key, auth_message)
        return b"v=" + base64.b64encode(signature)

    def _server_nonce(self) -> str:
        """Return a nonce as ScramFormatter.secureRandomString does: 130 bits in digits and small letters."""
        number, digits = self._rng.getrandbits(_NONCE_BITS), ""
        while number:
            number, digit = divmod(number, len(_DIGITS))
            digits += _DIGITS[digit]
        return digits or "0"


_BEARER_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_SASL_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER = re.compile(r"(?i:bearer) +([-_.a-zA-Z0-9]+)")


class OAuthBearer(Mechanism):
    """One message with the bearer token; a refused client gets the reason as JSON and ends with ^A, or tries again."""

    def __init__(self, rules: TokenRules, now_ms: int) -> None:
        self._rules = rules
        self._now_ms = now_ms
        self._refused: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Judge the bearer's token."""
        if self._refused is not None and token == b"\x01":
            raise AuthenticationError(f"{OAUTHBEARER}: {self._refused}", _INVALID_TOKEN)
        message = _matched(_BEARER_FIRST, token, f"{OAUTHBEARER}: the client's message is malformed")
        pairs = dict(pair.split("=", 1) for pair in message["pairs"].split("\x01") if pair)
        bearer = _BEARER.fullmatch(pairs.get("auth", ""))
        if bearer is None:
            raise AuthenticationError(f"{OAUTHBEARER}: the client's message has no bearer token")
        try:
            found = self._rules.judge(bearer[1], self._now_ms)
        except InvalidTokenError as wrong:
            self._refused = str(wrong)
            return _INVALID_TOKEN.encode()
        authorization_id = message["authorization_id"] or ""
        if authorization_id not in ("", found.user):
            client_message = (
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({found.user})"
            )
            _deny(client_message)
        self.user, self.credential_expiration_ms = found
        self.is_complete = True
        return b""


_INVALID_TOKEN = '{"status":"invalid_token"}'


def _matched(pattern: re.Pattern[str], token: bytes, reason: str) -> re.Match[str]:
    found = pattern.fullmatch(token.decode("ascii", "replace"))
    if found is None:
        raise AuthenticationError(reason)
    return found


def _check_authorization_id(authorization_id: str, user: str) -> None:
    if authorization_id and authorization_id != user:
        client_message = "Authentication failed: Client requested an authorization id that is different from username"
        raise AuthenticationError(f"{user!r} requested authorization as {authorization_id!r}", client_message)


def _deny(client_message: str) -> NoReturn:
    raise AuthenticationError(client_message, client_message)
