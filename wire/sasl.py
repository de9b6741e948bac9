"""The client's side of SASL's PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628).

It yields tokens to send and receives challenges.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from mockraft.wire import scram

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"

_SERVER_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[a-zA-Z0-9/+=]+),i=(?P<iterations>[0-9]{1,9})"
)
_NO_CHANNEL_BINDING: Final = "n,,"


class SaslError(ConnectionError):
    """The server refused the credentials, or could not prove that it knows the password."""


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """A client's credentials.

    With `is_token` the name is a delegation token's id, the password its HMAC in base64. The password for OAUTHBEARER
    is the bearer's token.
    """

    mechanism: str
    user: str
    password: str = field(repr=False)
    is_token: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in (known := (PLAIN, *scram.HASHES, OAUTHBEARER)):
            raise ValueError(f"SASL mechanism {self.mechanism!r}: it must be {' or '.join(known)}")


def tokens(login: SaslLogin, nonce: str) -> Generator[bytes, bytes, None]:
    """Yield the client's tokens and receive the server's answer to each; return on success, else raise SaslError.

    `nonce` is printable ASCII without a comma and must be fresh for each exchange.
    """
    if login.mechanism == PLAIN:
        yield f"\0{login.user}\0{login.password}".encode()
        return
    if login.mechanism == OAUTHBEARER:
        refused = yield f"n,,\x01auth=Bearer {login.password}\x01\x01".encode()
        if refused:
            yield b"\x01"
            raise SaslError(f"{OAUTHBEARER}: {refused.decode('utf-8', 'replace')}")
        return
    yield from _scram(login, nonce)


def unsecured_token(user: str) -> str:
    """Return an unsigned JSON web token for a user, as OAuthBearerLoginModule makes it, until 2100. ValueError."""
    parts = ({"alg": "none"}, {"sub": user, "iat": 0, "exp": 4_102_444_800})
    token = "".join(base64.b64encode(json.dumps(part).encode()).decode().rstrip("=") + "." for part in parts)
    if "+" in token or "/" in token:
        raise ValueError(f"an unsecured token for {user!r} has characters that Kafka refuses: try another name")
    return token


def _scram(login: SaslLogin, nonce: str) -> Generator[bytes, bytes, None]:
    hash_name = scram.HASHES[login.mechanism]
    bare = f"n={scram.sasl_name(login.user)},r={nonce}" + (",tokenauth=true" if login.is_token else "")
    server_first = (yield (_NO_CHANNEL_BINDING + bare).encode()).decode("ascii", "replace")
    found = _SERVER_FIRST.fullmatch(server_first)
    if found is None or not found["nonce"].startswith(nonce) or found["nonce"] == nonce:
        raise SaslError(f"{login.mechanism}: the server's first message is malformed")
    iterations = int(found["iterations"])
    # A server must not be able to keep this side busy for long.
    if not scram.ITERATIONS_MIN <= iterations <= scram.ITERATIONS_MAX:
        raise SaslError(f"{login.mechanism}: the server asks for {iterations} iterations")
    salt = _from_base64(found["salt"], login)
    salted = scram.salted_password(hash_name, login.password, salt, iterations)
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    without_proof = f"c={binding},r={found['nonce']}"
    auth_message = f"{bare},{server_first},{without_proof}".encode()
    client_key = scram.client_key(hash_name, salted)
    signature = scram.signature(hash_name, scram.stored_key(hash_name, client_key), auth_message)
    proof = base64.b64encode(scram.xor(client_key, signature)).decode()
    server_final = yield f"{without_proof},p={proof}".encode()
    expected = scram.signature(hash_name, scram.server_key(hash_name, salted), auth_message)
    if not hmac.compare_digest(server_final, b"v=" + base64.b64encode(expected)):
        raise SaslError(f"{login.mechanism}: the server does not know the password of {login.user!r}")


def _from_base64(text: str, login: SaslLogin) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise SaslError(f"{login.mechanism}: the server's salt is no base64") from error
