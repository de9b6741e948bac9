"""Delegation tokens: create, renew, expire and delete (DelegationTokenControlManager, KIP-48, KIP-900).

A principal is written `type:name`; times are milliseconds since the epoch. A token's HMAC, the owner's secret, is
derived from its id and the controller's secret key.
"""

import hmac
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.releases import Behaviour
from mockraft.server.controller.image.security import DelegationToken
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.wire import error_codes, uuids
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.remove_delegation_token_record import RemoveDelegationTokenRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

REMOVALS_PER_RUN_MAX: Final = 1000
_LATEST_MS: Final = (1 << 63) - 1
_RENEWER_TYPE: Final = "User"


class CreatedToken(NamedTuple):
    """A new token, as returned to its owner."""

    token_id: str
    hmac: bytes
    token: DelegationToken


def create_token(
    controller: "ControllerContext",
    owner: str,
    requester: str,
    renewers: Sequence[tuple[str, str]],
    max_lifetime_ms: int,
    now_ms: int,
) -> ControllerResult[CreatedToken]:
    """Create a token; `max_lifetime_ms` of 0 or less is the configured one, which is also the maximum.

    Renewers are (type, name). ApiError DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION or, for a renewer who is no
    user, INVALID_PRINCIPAL_TYPE.
    """
    secret_key = _secret_key(controller)
    config = controller.config
    if any(principal_type != _RENEWER_TYPE for principal_type, _ in renewers):
        raise ApiError(error_codes.INVALID_PRINCIPAL_TYPE)
    max_timestamp = _later(now_ms, _at_most(config.delegation_token_max_lifetime_ms, max_lifetime_ms))
    token = DelegationToken(
        owner=owner,
        requester=requester,
        renewers=tuple(f"{principal_type}:{name}" for principal_type, name in renewers),
        issue_timestamp=now_ms,
        max_timestamp=max_timestamp,
        expiration_timestamp=min(max_timestamp, _later(now_ms, config.delegation_token_expiry_time_ms)),
    )
    token_id = uuids.text_of(draw_uuid(controller.rng))
    created = CreatedToken(token_id, hmac_of(secret_key, token_id), token)
    return ControllerResult([token.to_record(token_id)], created, "delegation token created")


def renew_token(
    controller: "ControllerContext", token_hmac: bytes, principal: str, period_ms: int, now_ms: int
) -> ControllerResult[int]:
    """Renew a token and return its expiry; a `period_ms` of 0 or less is the configured one.

    ApiError DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION, DELEGATION_TOKEN_NOT_FOUND, _EXPIRED or, unless the
    principal is the owner or a renewer, _OWNER_MISMATCH.
    """
    token_id, token = _find(controller, token_hmac)
    if _is_over(token, now_ms):
        raise ApiError(error_codes.DELEGATION_TOKEN_EXPIRED)
    _check_may_renew(token, principal)
    # Kafka's addition overflows only here: a configured period without end makes a renewed token expire.
    until_ms = now_ms + _at_most(controller.config.delegation_token_expiry_time_ms, period_ms)
    expiration_ms = min(token.max_timestamp, until_ms if until_ms <= _LATEST_MS else until_ms - (1 << 64))
    return ControllerResult([_until(expiration_ms, token_id, token)], expiration_ms, "delegation token renewed")


def expire_token(
    controller: "ControllerContext", token_hmac: bytes, principal: str, period_ms: int, now_ms: int
) -> ControllerResult[int]:
    """Set a token's expiry to `period_ms` from now and return it; a negative period deletes the token at once.

    ApiError as `renew_token`; the owner is checked before the expiry.
    """
    token_id, token = _find(controller, token_hmac)
    _check_may_renew(token, principal)
    if period_ms < 0:
        return ControllerResult([_removal(token_id)], now_ms, "delegation token ended")
    if _is_over(token, now_ms):
        raise ApiError(error_codes.DELEGATION_TOKEN_EXPIRED)
    expiration_ms = min(token.max_timestamp, _later(now_ms, period_ms))
    return ControllerResult([_until(expiration_ms, token_id, token)], expiration_ms, "delegation token expires")


def remove_expired_tokens(controller: "ControllerContext", now_ms: int) -> ControllerResult[bool]:
    """Delete expired tokens, a thousand at a time (periodic); without a secret key there are none."""
    if not controller.config.delegation_token_secret_key:
        return ControllerResult([], False)
    tokens = controller.image.security.delegation_tokens
    over = [token_id for token_id, token in tokens.items() if _is_over(token, now_ms)]
    records = [_removal(token_id) for token_id in over[:REMOVALS_PER_RUN_MAX]]
    reason = "delegation tokens are over"
    return ControllerResult(records, len(over) >= REMOVALS_PER_RUN_MAX, reason, atomic=False)


def _secret_key(controller: "ControllerContext") -> bytes:
    secret_key = controller.config.delegation_token_secret_key
    if not secret_key:
        raise ApiError(error_codes.DELEGATION_TOKEN_AUTH_DISABLED)
    if not controller.has(Behaviour.DELEGATION_TOKENS):
        raise ApiError(error_codes.UNSUPPORTED_VERSION)
    return secret_key.encode()


def _find(controller: "ControllerContext", token_hmac: bytes) -> tuple[str, DelegationToken]:
    secret_key = _secret_key(controller)
    for token_id, token in controller.image.security.delegation_tokens.items():
        if hmac.compare_digest(hmac_of(secret_key, token_id), token_hmac):
            return token_id, token
    raise ApiError(error_codes.DELEGATION_TOKEN_NOT_FOUND)


def hmac_of(secret_key: bytes, token_id: str) -> bytes:
    """Return the secret by which a token's owner authenticates."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def _check_may_renew(token: DelegationToken, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise ApiError(error_codes.DELEGATION_TOKEN_OWNER_MISMATCH)


def _is_over(token: DelegationToken, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def _at_most(configured_ms: int, asked_ms: int) -> int:
    return min(configured_ms, asked_ms) if asked_ms > 0 else configured_ms


def _later(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _LATEST_MS)


def _until(expiration_ms: int, token_id: str, token: DelegationToken) -> RecordAt:
    return replace(token, expiration_timestamp=expiration_ms).to_record(token_id)


def _removal(token_id: str) -> RecordAt:
    return RecordAt(RemoveDelegationTokenRecord(token_id=token_id), 0)
