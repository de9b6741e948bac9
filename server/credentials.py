"""Credentials of a controller's image: SCRAM credentials and delegation tokens."""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING

from mockraft.kafka_api.authentication.credentials import TokenCredential
from mockraft.server.controller.security import delegation_tokens
from mockraft.wire import scram
from mockraft.wire.scram import NUMBERS, ScramCredential

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller

TOKEN_CREDENTIALS_KEPT = 1_000


class ImageCredentials:
    """The users and tokens that a controller knows at each login."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._of_tokens: dict[tuple[str, str], ScramCredential] = {}

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential."""
        return self._controller.image.security.scram.get((NUMBERS[mechanism], user))

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """Return a token's credential: its HMAC is the password (DelegationTokenManager.prepareScramCredentials)."""
        token = self._controller.image.security.delegation_tokens.get(token_id)
        secret_key = self._controller.config.delegation_token_secret_key
        if token is None or not secret_key:
            return None
        credential = self._of_tokens.get((mechanism, token_id))
        if credential is None:
            credential = _token_credential(mechanism, token_id, secret_key)
            if len(self._of_tokens) >= TOKEN_CREDENTIALS_KEPT:
                del self._of_tokens[next(iter(self._of_tokens))]
            self._of_tokens[mechanism, token_id] = credential
        return TokenCredential(credential, token.owner.partition(":")[2], token.expiration_timestamp)


def _token_credential(mechanism: str, token_id: str, secret_key: str) -> ScramCredential:
    hash_name = scram.HASHES[mechanism]
    password = base64.b64encode(delegation_tokens.hmac_of(secret_key.encode(), token_id)).decode()
    salt = hmac.digest(secret_key.encode(), f"salt of {mechanism} {token_id}".encode(), "sha256")
    salted = scram.salted_password(hash_name, password, salt, scram.ITERATIONS_MIN)
    stored_key = scram.stored_key(hash_name, scram.client_key(hash_name, salted))
    return ScramCredential(salt, stored_key, scram.server_key(hash_name, salted), scram.ITERATIONS_MIN)
