"""Delegation tokens as brokers ask for them, in envelopes with their client's principal: rules in Kafka's order."""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.security.delegation_tokens import REMOVALS_PER_RUN_MAX
from mockraft.wire import error_codes, messages
from mockraft.wire.connection import write_request
from mockraft.wire.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest

from ...rows import each_row

SECRET_KEY = "a secret"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TOKEN_APIS = (CreateDelegationTokenRequest, RenewDelegationTokenRequest, ExpireDelegationTokenRequest)


class Tokens:
    """A controller with tokens, asked through envelopes."""

    def __init__(self, rig: Any) -> None:
        self.rig = rig
        self.connection = rig.connect()
        self.mark = rig.controller.log.end_offset

    def ask(self, message: Any, version: int, user: str = "alice", *, token_authenticated: bool = False) -> Any:
        principal = DefaultPrincipalData(type="User", name=user, token_authenticated=token_authenticated)
        envelope = EnvelopeRequest(
            request_data=write_request(message, version, 1, "tool")[4:],
            request_principal=b"\0\0" + principal.write(0),
            client_host_address=b"\x7f\0\0\1",
        )
        self.mark = self.rig.controller.log.end_offset
        response = self.rig.ask(self.connection, envelope, 0)
        assert response.error_code == 0
        offset = 4 + messages.response_header_version(message.api_key, version)
        return messages.response(message.api_key).read(response.response_data[offset:], version)

    def create(self, user: str = "alice", version: int = 3, **fields: Any) -> Any:
        return self.ask(CreateDelegationTokenRequest(**fields), version, user)

    def renew(self, token_hmac: bytes, period_ms: int = -1, user: str = "alice") -> tuple[int, int]:
        response = self.ask(RenewDelegationTokenRequest(hmac=token_hmac, renew_period_ms=period_ms), 2, user)
        return response.error_code, response.expiry_timestamp_ms

    def expire(self, token_hmac: bytes, period_ms: int = -1, user: str = "alice") -> tuple[int, int]:
        response = self.ask(ExpireDelegationTokenRequest(hmac=token_hmac, expiry_time_period_ms=period_ms), 2, user)
        return response.error_code, response.expiry_timestamp_ms

    def written(self) -> list[Any]:
        return [record for _, (record, version) in self.rig.controller.log.records(self.mark) if version == 0]

    def tokens(self) -> list[str]:
        return list(self.rig.controller.image.security.delegation_tokens)


@pytest.fixture
def new_tokens(make_rig: Any, make_controller: Any) -> Callable[..., Tokens]:
    def new(**options: Any) -> Tokens:
        options = {"delegation_token_secret_key": SECRET_KEY, "metadata_max_idle_interval_ms": 0, **options}
        return Tokens(make_rig(*APIS.values(), controller=make_controller(ControllerConfig(**options))))

    return new


@pytest.fixture
def tokens(new_tokens: Callable[..., Tokens]) -> Tokens:
    return new_tokens()


@pytest.mark.parametrize("request_class", TOKEN_APIS)
def test_refuses_direct_requests_and_token_logins(tokens: Tokens, request_class: Any) -> None:
    direct = tokens.rig.ask(tokens.connection, request_class(), request_class.max_version)
    by_token = tokens.ask(request_class(), request_class.max_version, token_authenticated=True)
    for response in (direct, by_token):
        assert response.error_code == error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert response.expiry_timestamp_ms == -1


@each_row("secret_key", [None, ""])
@each_row("request_class", TOKEN_APIS)
def test_without_a_secret_key_there_are_none(new_tokens: Any, secret_key: str | None, request_class: Any) -> None:
    tokens = new_tokens(delegation_token_secret_key=secret_key, metadata_version=13)
    response = tokens.ask(request_class(), request_class.max_version)
    assert response.error_code == error_codes.DELEGATION_TOKEN_AUTH_DISABLED
    assert response.expiry_timestamp_ms == 0


@each_row("request_class", TOKEN_APIS)
def test_levels_before_3_6_iv2_have_none(new_tokens: Any, request_class: Any) -> None:
    request = request_class()
    if isinstance(request, CreateDelegationTokenRequest):
        request.renewers = [CreatableRenewers(principal_type="Group", principal_name="g")]
    codes = [
        new_tokens(metadata_version=level).ask(request, request_class.max_version).error_code for level in (13, 14)
    ]
    assert codes[0] == error_codes.UNSUPPORTED_VERSION
    assert codes[1] in (error_codes.INVALID_PRINCIPAL_TYPE, error_codes.DELEGATION_TOKEN_NOT_FOUND)


def test_a_token_is_its_requesters_and_proves_itself(tokens: Tokens) -> None:
    renewers = [CreatableRenewers(principal_type="User", principal_name=name) for name in ("bob", "carol")]
    made = tokens.create(renewers=renewers)
    now_ms = tokens.rig.now_ms
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    assert (made.token_requester_principal_type, made.token_requester_principal_name) == ("User", "alice")
    times = (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
    assert times == (now_ms, now_ms + DAY_MS, now_ms + 7 * DAY_MS)
    assert made.hmac == hmac.digest(SECRET_KEY.encode(), made.token_id.encode(), hashlib.sha512)
    (record,) = tokens.written()
    assert (record.owner, record.requester, record.renewers) == ("User:alice", "User:alice", ["User:bob", "User:carol"])
    assert (record.issue_timestamp, record.expiration_timestamp, record.max_timestamp) == times
    assert tokens.tokens() == [record.token_id] == [made.token_id]


@pytest.mark.parametrize(
    ("asked_ms", "lifetime_ms"), [(-1, 7 * DAY_MS), (0, 7 * DAY_MS), (9 * DAY_MS, 7 * DAY_MS), (5, 5)]
)
def test_token_lifetime_is_the_requested_one_up_to_the_maximum(tokens: Tokens, asked_ms: int, lifetime_ms: int) -> None:
    made = tokens.create(max_lifetime_ms=asked_ms)
    assert made.max_timestamp_ms - made.issue_timestamp_ms == lifetime_ms
    assert made.expiry_timestamp_ms - made.issue_timestamp_ms == min(lifetime_ms, DAY_MS)


def test_token_may_be_requested_for_another_user(tokens: Tokens) -> None:
    made = tokens.create(owner_principal_type="Group", owner_principal_name="admins")
    assert (made.principal_type, made.principal_name) == ("Group", "admins")
    (record,) = tokens.written()
    assert (record.owner, record.requester) == ("Group:admins", "User:alice")


def test_an_owner_without_a_type_breaks_kafka(tokens: Tokens) -> None:
    made = tokens.create(owner_principal_type=None, owner_principal_name="bob")
    assert (made.error_code, made.principal_name, made.issue_timestamp_ms) == (-1, "ANONYMOUS", -1)
    assert made.token_requester_principal_name == "ANONYMOUS"
    assert tokens.create(owner_principal_type=None, owner_principal_name=None).principal_name == "alice"


@pytest.mark.parametrize("principal_type", ["Group", "user", "", "User:x"])
def test_only_users_renew(tokens: Tokens, principal_type: str) -> None:
    made = tokens.create(renewers=[CreatableRenewers(principal_type=principal_type, principal_name="g")])
    assert (made.error_code, made.issue_timestamp_ms) == (error_codes.INVALID_PRINCIPAL_TYPE, 0)
    assert tokens.written() == []


@pytest.mark.parametrize("version", [1, 2])
def test_older_versions_omit_the_requester(tokens: Tokens, version: int) -> None:
    made = tokens.create(version=version)
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "alice", "")


def test_owner_and_renewers_renew_up_to_the_tokens_end(tokens: Tokens) -> None:
    made = tokens.create(renewers=[CreatableRenewers(principal_type="User", principal_name="bob")])
    tokens.rig.now_ms += HOUR_MS
    assert tokens.renew(made.hmac) == (0, made.expiry_timestamp_ms + HOUR_MS)
    assert tokens.renew(made.hmac, 5, "bob") == (0, tokens.rig.now_ms + 5)
    assert tokens.renew(made.hmac, 9 * DAY_MS) == (0, tokens.rig.now_ms + DAY_MS)
    (record,) = tokens.written()
    assert (record.token_id, record.expiration_timestamp) == (made.token_id, tokens.rig.now_ms + DAY_MS)
    for _ in range(6):
        tokens.rig.now_ms += DAY_MS
        assert tokens.renew(made.hmac)[0] == 0
    assert tokens.renew(made.hmac) == (0, made.max_timestamp_ms)


def test_renewal_without_end_overflows_as_kafkas(new_tokens: Any) -> None:
    tokens = new_tokens(delegation_token_expiry_time_ms=(1 << 63) - 1)
    made = tokens.create()
    assert tokens.renew(made.hmac, DAY_MS) == (0, tokens.rig.now_ms + DAY_MS)
    assert tokens.renew(made.hmac) == (0, tokens.rig.now_ms - (1 << 63) - 1)
    assert tokens.renew(made.hmac) == (error_codes.DELEGATION_TOKEN_EXPIRED, 0)


def test_renewal_is_refused_in_kafkas_order(tokens: Tokens) -> None:
    made = tokens.create()
    assert tokens.renew(b"no such") == (error_codes.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert tokens.renew(made.hmac, user="mallory") == (error_codes.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    tokens.rig.now_ms += DAY_MS
    assert tokens.renew(made.hmac, user="mallory")[0] == error_codes.DELEGATION_TOKEN_OWNER_MISMATCH
    tokens.rig.now_ms += 1
    assert tokens.renew(made.hmac, user="mallory") == (error_codes.DELEGATION_TOKEN_EXPIRED, 0)
    assert tokens.written() == []


def test_token_expires_at_the_requested_time_or_at_once_when_negative(tokens: Tokens) -> None:
    made = tokens.create()
    assert tokens.expire(made.hmac, 10) == (0, tokens.rig.now_ms + 10)
    assert tokens.expire(made.hmac, 1 << 62) == (0, made.max_timestamp_ms)
    assert tokens.expire(made.hmac, (1 << 63) - 1) == (0, made.max_timestamp_ms)
    assert tokens.expire(made.hmac, -5) == (0, tokens.rig.now_ms)
    assert [record.token_id for record in tokens.written()] == [made.token_id]
    assert tokens.expire(made.hmac) == (error_codes.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert tokens.tokens() == []


def test_ownership_is_checked_before_expiry(tokens: Tokens) -> None:
    made = tokens.create()
    tokens.rig.now_ms += DAY_MS + 1
    assert tokens.expire(made.hmac, 5, "mallory") == (error_codes.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert tokens.expire(made.hmac, 5) == (error_codes.DELEGATION_TOKEN_EXPIRED, 0)
    assert tokens.expire(made.hmac, -1) == (0, tokens.rig.now_ms)


def test_tokens_that_are_over_go_when_their_time_to_be_checked_comes(new_tokens: Any) -> None:
    tokens = new_tokens(delegation_token_expiry_check_interval_ms=1000)
    over, kept = tokens.create(max_lifetime_ms=500), tokens.create()
    tokens.rig.tick(tokens.rig.now_ms + 999)
    assert tokens.tokens() == [over.token_id, kept.token_id]
    tokens.rig.tick(tokens.rig.now_ms + 1)
    assert tokens.tokens() == [kept.token_id]


def test_a_thousand_tokens_go_at_a_time(new_tokens: Any) -> None:
    tokens = new_tokens(delegation_token_expiry_check_interval_ms=1000)
    for _ in range(REMOVALS_PER_RUN_MAX + 1):
        tokens.create(max_lifetime_ms=1)
    tokens.mark = tokens.rig.controller.log.end_offset
    tokens.rig.tick(tokens.rig.now_ms + 1000)
    assert tokens.tokens() == []
    assert len(tokens.written()) == REMOVALS_PER_RUN_MAX + 1


def test_a_controller_has_no_answer_about_tokens(tokens: Tokens) -> None:
    tokens.create()
    for version in (1, 2, 3):
        response = tokens.rig.ask(tokens.connection, DescribeDelegationTokenRequest(owners=None), version)
        assert (response.error_code, response.tokens) == (error_codes.UNKNOWN_SERVER_ERROR, [])


def test_the_secret_key_is_not_shown() -> None:
    assert SECRET_KEY not in repr(ControllerConfig(delegation_token_secret_key=SECRET_KEY))
