"""Bearer tokens of OAUTHBEARER (KIP-255, KIP-768): JSON web tokens, signed by a key of a JWKS, or unsecured.

With a JWKS a token is judged as by Kafka's BrokerJwtValidator. Without one it must have no signature, as for Kafka's
OAuthBearerUnsecuredValidatorCallbackHandler, its default. Times are those of the controller's clock.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.files.given_files import read_url

if TYPE_CHECKING:
    from jwt import PyJWK

CLOCK_SKEW_S: Final = 30
"""`sasl.oauthbearer.clock.skew.seconds`; for signed tokens only."""
SIGNATURES: Final = tuple(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OPTION: Final = "sasl_oauthbearer_jwks_endpoint_url"


class InvalidTokenError(ValueError):
    """The token is no proof of who its sender is."""


class BearerToken(NamedTuple):
    """The user that a valid token names, and its end in milliseconds since the epoch."""

    user: str
    expiration_ms: int


class TokenRules(NamedTuple):
    """The demands of a listener on tokens; `keys` by their ids, None for unsecured tokens."""

    keys: Mapping[str | None, PyJWK] | None = None
    audience: tuple[str, ...] = ()
    issuer: str | None = None

    def judge(self, token: str, now_ms: int) -> BearerToken:
        """Return what a token says. Raise InvalidTokenError, for the journal."""
        try:
            claims = _unsecured(token) if self.keys is None else self._signed(token, self.keys)
        except RecursionError:
            raise InvalidTokenError("its JSON is nested too deep") from None
        skew_s = 0 if self.keys is None else CLOCK_SKEW_S
        now_s = now_ms / 1000
        user, end_s = claims.get("sub"), _seconds(claims, "exp")
        if not isinstance(user, str) or not user.strip() or _SURROGATE.search(user):
            raise InvalidTokenError("it has no sub")
        if end_s is None:
            raise InvalidTokenError("it has no exp")
        if now_s - skew_s >= end_s:
            raise InvalidTokenError(f"it ended {now_s - end_s:.0f} s ago")
        begin_s = _seconds(claims, "iat" if self.keys is None else "nbf")
        if begin_s is not None and begin_s > now_s + skew_s:
            raise InvalidTokenError(f"it begins in {begin_s - now_s:.0f} s")
        return BearerToken(user if self.keys is None else user.strip(), round(end_s * 1000))

    def _signed(self, token: str, keys: Mapping[str | None, PyJWK]) -> Mapping[str, object]:
        jwt = _jwt()
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = next(iter(keys.values())) if kid is None and len(keys) == 1 else keys.get(kid)
            if key is None:
                raise InvalidTokenError(f"the JWKS has no key {kid!r}")
            # Times are left to `judge`: this library knows the machine's clock only.
            claims: Mapping[str, object] = jwt.decode(
                token,
                key.key,
                algorithms=[*SIGNATURES, "EdDSA"],
                audience=self.audience or None,
                issuer=self.issuer,
                options={
                    "require": ["exp", "iat", "sub"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        # A TypeError or the like is that of a signature of another kind than the key.
        except (jwt.PyJWTError, AttributeError, TypeError, ValueError) as wrong:
            raise InvalidTokenError(str(wrong)) from wrong
        return claims


def token_rules(url: str | None, audience: tuple[str, ...], issuer: str | None) -> TokenRules:
    """Return the rules of a listener; reads the JWKS, which is not read again. ValueError if that is impossible."""
    if url is None:
        if audience or issuer:
            raise ValueError(f"{_OPTION} is missing: audience and issuer of unsecured tokens are not examined")
        return TokenRules()
    jwt = _jwt()
    try:
        found = jwt.PyJWKSet.from_json(read_url(url))
        keys = {key.key_id: key for key in found.keys}
    except OSError as error:
        raise ValueError(f"{_OPTION}={url}: {error.strerror}") from None
    except (jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as wrong:
        raise ValueError(f"{_OPTION}={url}: no JWKS: {wrong}") from None
    return TokenRules(keys, audience, issuer)


def _jwt() -> ModuleType:
    try:
        import jwt
    except ImportError:
        raise ValueError(f"{_OPTION} needs PyJWT: pip install 'mockraft[oauth]'") from None
    return jwt


def _unsecured(token: str) -> Mapping[str, object]:
    header, _, rest = token.partition(".")
    claims, dot, signature = rest.partition(".")
    if not dot or signature:
        raise InvalidTokenError("an unsecured token is expected: header.claims. without a signature")
    if (algorithm := _object(header).get("alg")) != "none":
        raise InvalidTokenError(f"an unsecured token is expected, and its alg is {algorithm!r}")
    return _object(claims)


def _object(part: str) -> Mapping[str, object]:
    try:
        # Kafka's decoder of unsecured tokens does not know the two characters of base64url.
        tree = json.loads(base64.b64decode(part + "=" * (-len(part) % 4), validate=True))
    except ValueError:
        raise InvalidTokenError("it is no JSON web token") from None
    if not isinstance(tree, dict):
        raise InvalidTokenError("it is no JSON web token")
    return tree


def _seconds(claims: Mapping[str, object], name: str) -> float | None:
    """Return a time in seconds since the epoch, None where there is none. Later ones than Kafka's are refused."""
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1 << 53:
        raise InvalidTokenError(f"its {name} is no time")
    return value
