"""The same requests about delegation tokens to Kafka's controller and to ours: the same answers and records.

Token ids and HMACs are checked against each other and masked, times are told to the hour since the test began.
"""

import hashlib
import hmac
import time
from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire import error_codes
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from mockraft.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from mockraft.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest

pytestmark = pytest.mark.real_kafka

SECRET_KEY = "a secret"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LATEST_MS = (1 << 63) - 1
WITH_KEY = {"delegation_token_secret_key": SECRET_KEY}
NOT_FOUND = error_codes.DELEGATION_TOKEN_NOT_FOUND


class Life:
    """A request with its answers and records."""

    def __init__(self, side: Any) -> None:
        self.side = side
        self.began_ms = time.time() * 1000
        self.hmacs: dict[str, bytes] = {}
        self.outcomes: dict[str, Any] = {}
        side.new_records()

    def direct(self, name: str, message: Any, version: int) -> None:
        self._tell(name, self.side.ask(message, version), version)

    def ask(self, message: Any, version: int, user: str = "alice", token_authenticated: bool = False) -> Any:
        return self.side.forward(message, version, user, token_authenticated=token_authenticated)

    def create(
        self, name: str, version: int = 3, user: str = "alice", authenticated: bool = False, **fields: Any
    ) -> None:
        renewers = fields.pop("renewers", ())
        fields["renewers"] = [CreatableRenewers(principal_type=kind, principal_name=each) for kind, each in renewers]
        made = self.ask(CreateDelegationTokenRequest(**fields), version, user, authenticated)
        if made.error_code == 0:
            assert made.hmac == hmac.digest(SECRET_KEY.encode(), made.token_id.encode(), hashlib.sha512)
            self.hmacs[name] = made.hmac
            # Kafka's controller finds a token by its HMAC some time after it made it.
            wait_until(lambda: self.code_for_a_stranger(name) != NOT_FOUND, 60, f"token {name} known")
        self._tell(f"create {name}", made, version)

    def renew(self, name: str, token: str, period_ms: int, user: str = "alice", version: int = 2) -> None:
        self.renew_or_expire(name, RenewDelegationTokenRequest(renew_period_ms=period_ms), token, user, version)

    def expire(self, name: str, token: str, period_ms: int, user: str = "alice", version: int = 2) -> None:
        self.renew_or_expire(name, ExpireDelegationTokenRequest(expiry_time_period_ms=period_ms), token, user, version)

    def renew_or_expire(self, name: str, request: Any, token: str, user: str, version: int) -> None:
        request.hmac = self.hmacs.get(token, b"no such token")
        self._tell(name, self.ask(request, version, user), version)

    def code_for_a_stranger(self, token: str) -> int:
        request = RenewDelegationTokenRequest(hmac=self.hmacs[token], renew_period_ms=-1)
        return int(self.ask(request, 2, "stranger").error_code)

    def wait_for_code(self, token: str, code: int) -> None:
        wait_until(lambda: self.code_for_a_stranger(token) == code, 60, f"{error_codes.name(code)} for {token}")

    def _tell(self, name: str, answer: Any, version: int) -> None:
        records = [(r, v) for r, v in self.side.new_records() if "Token" in type(r).__name__]
        ids = {getattr(answer, "token_id", "") or record.token_id for record, _ in records}
        assert len(ids) == len(records) <= 1
        masked = [[type(r).__name__, v, self._masked(to_json(r, v))] for r, v in records]
        self.outcomes[name] = self._masked(to_json(answer, version)), masked

    def _masked(self, tree: dict[str, Any]) -> dict[str, Any]:
        for field, value in tree.items():
            if field in ("tokenId", "hmac") and value:
                tree[field] = f"a {field}"
            elif "imestamp" in field and 0 < value < LATEST_MS:
                tree[field] = f"{round((value - self.began_ms) / HOUR_MS)} h"
        return tree


def without_key(side: Any) -> dict[str, Any]:
    life = Life(side)
    for version in (1, 2, 3):
        life.direct(f"create {version}", CreateDelegationTokenRequest(), version)
        life.direct(f"describe {version}", DescribeDelegationTokenRequest(owners=None), version)
        life.create(f"{version}", version)
    owned: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    life.direct("create for another", CreateDelegationTokenRequest(**owned), 3)
    life.direct("describe nobody's", DescribeDelegationTokenRequest(owners=[]), 3)
    life.create("for another", **owned)
    life.create("a group renews", renewers=[("Group", "g")])
    life.create("no type of the owner", owner_principal_type=None, owner_principal_name="bob")
    life.create("logged in with a token", authenticated=True)
    for version in (1, 2):
        life.direct(f"renew {version}", RenewDelegationTokenRequest(), version)
        life.direct(f"expire {version}", ExpireDelegationTokenRequest(), version)
        life.renew(f"forwarded renew {version}", "none", 1, version=version)
        life.expire(f"forwarded expire {version}", "none", 1, version=version)
    return life.outcomes


def with_key(side: Any) -> dict[str, Any]:
    life = Life(side)
    life.direct("create directly", CreateDelegationTokenRequest(), 3)
    life.direct("describe", DescribeDelegationTokenRequest(owners=None), 3)
    life.create("logged in with a token", authenticated=True)
    for version in (1, 2, 3):
        life.create(f"version {version}", version)
    life.create("for another", owner_principal_type="User", owner_principal_name="bob")
    life.create("for a group", owner_principal_type="Group", owner_principal_name="g:h")
    life.create("for nobody", owner_principal_type="User", owner_principal_name="")
    life.create("for null", owner_principal_type=None, owner_principal_name=None)
    life.create("no type of the owner", owner_principal_type=None, owner_principal_name="bob")
    life.create("an empty type of the owner", owner_principal_type="", owner_principal_name="bob")
    for kind in ("Group", "user", "", "User:x"):
        life.create(f"renewed by a {kind}", renewers=[("User", "bob"), (kind, "x")])
    for lifetime_ms in (-1, 0, 2 * HOUR_MS, 30 * HOUR_MS, 9 * DAY_MS, LATEST_MS):
        life.create(f"living {lifetime_ms}", max_lifetime_ms=lifetime_ms)
    life.create("t", renewers=[("User", "bob"), ("User", "carol"), ("User", "bob")], max_lifetime_ms=50 * HOUR_MS)
    life.renew("renew an unknown one", "no such", 1)
    life.renew("renew a stranger's", "t", 1, "stranger")
    for period_ms in (-1, 0, 5 * HOUR_MS, 2 * DAY_MS, LATEST_MS):
        life.renew(f"renew for {period_ms}", "t", period_ms)
    life.renew("renewed by a renewer", "t", 3 * HOUR_MS, "carol", 1)
    life.renew("renewed by the requester", "for another", 3 * HOUR_MS)
    life.expire("expire an unknown one", "no such", -1)
    life.expire("expire a stranger's", "t", -1, "stranger")
    for period_ms in (7 * HOUR_MS, 9 * DAY_MS, LATEST_MS):
        life.expire(f"expire in {period_ms}", "t", period_ms, "bob", 1)
    life.expire("expire now", "t", 0)
    life.wait_for_code("t", error_codes.DELEGATION_TOKEN_EXPIRED)
    life.renew("renew what is over", "t", HOUR_MS)
    life.expire("expire what is over", "t", HOUR_MS)
    life.expire("a stranger expires what is over", "t", HOUR_MS, "stranger")
    life.expire("end what is over", "t", -1)
    life.wait_for_code("t", NOT_FOUND)
    life.expire("end what is gone", "t", -1)
    life.expire("end what lives", "version 3", -(1 << 63))
    return life.outcomes


def swept(side: Any) -> list[str]:
    """The types of the records up to the removal of what was over; what was not stays."""
    life = Life(side)
    life.create("kept")
    life.ask(CreateDelegationTokenRequest(max_lifetime_ms=1), 3)
    seen: list[str] = []

    def removed() -> bool:
        seen.extend(type(record).__name__ for record, _ in side.new_records())
        return "RemoveDelegationTokenRecord" in seen

    wait_until(removed, 60, "the removal of a token that is over")
    assert life.code_for_a_stranger("kept") == error_codes.DELEGATION_TOKEN_OWNER_MISMATCH
    return [name for name in seen if "Token" in name]


@pytest.mark.parametrize(("run", "options"), [(without_key, {}), (with_key, WITH_KEY)])
def test_responses_and_records_equal_kafkas(on_both: Any, run: Any, options: dict[str, Any]) -> None:
    theirs, ours = on_both(run, **options)
    assert list(ours) == list(theirs)
    for name, result in theirs.items():
        assert ours[name] == result, name


def test_an_empty_key_is_none(on_both: Any) -> None:
    theirs, ours = on_both(without_key, delegation_token_secret_key="")
    assert ours == theirs


@pytest.mark.parametrize("level", ["3.6-IV1", "3.6-IV2"])
def test_tokens_came_with_a_level(on_both: Any, level: str) -> None:
    def life_of_one(side: Any) -> Any:
        life = Life(side)
        life.create("a")
        life.create("b", renewers=[("Group", "g")])
        life.renew("renew", "a", HOUR_MS)
        life.expire("expire", "a", -1)
        return life.outcomes

    theirs, ours = on_both(life_of_one, level, **WITH_KEY)
    assert ours == theirs
    assert any(records for _, records in ours.values()) == (level == "3.6-IV2")


def test_expired_tokens_are_removed(on_both: Any) -> None:
    theirs, ours = on_both(swept, **WITH_KEY, delegation_token_expiry_check_interval_ms=300)
    assert ours == theirs == ["DelegationTokenRecord", "RemoveDelegationTokenRecord"]
