"""Credentials that logins are checked against: passwords of the configuration, and what a metadata log has."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mockraft.wire.scram import ScramCredential


class TokenCredential(NamedTuple):
    """A delegation token used for a login: credential, owner and expiry (ms)."""

    credential: ScramCredential
    owner: str
    expiration_timestamp: int


class Credentials(Protocol):
    """Looks users up at each login, so a changed password counts from the next login on."""

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential."""

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """Return a token's credential."""


def password_is(users: Mapping[str, str], user: str, password: str) -> bool | None:
    """Check a user's PLAIN password in constant time; None for an unknown user."""
    known = users.get(user)
    # Digests are equally long, so the time does not reveal the length either.
    same = hmac.compare_digest(_digest(password), _digest(known or ""))
    return None if known is None else same


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
