"""The same requests about SCRAM and SASL to Kafka's controller and to ours: the same answers and records."""

from typing import Any

import pytest
from mockraft.wire.connection import write_request
from mockraft.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest

from ..conftest import Case

pytestmark = pytest.mark.real_kafka

SHA_256, SHA_512 = 1, 2
SILENCE_SECONDS = 0.5


def upsert(user: str, mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"p" * 32) -> Any:
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt of " + user[:8].encode(),
        salted_password=password,
    )


def alter(name: str, *changes: Any) -> Case:
    """Upsertions as they are, deletions as (user, mechanism)."""
    deletions = [
        ScramCredentialDeletion(name=each[0], mechanism=each[1]) for each in changes if isinstance(each, tuple)
    ]
    upsertions = [each for each in changes if not isinstance(each, tuple)]
    return Case(f"alter {name}", AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions))


MANY = [f"user-{number}" for number in range(40)]

CASES = [
    alter("nothing"),
    alter("a new user", upsert("alice")),
    alter("the same again", upsert("alice")),
    alter("another mechanism", upsert("alice", SHA_512, 8192)),
    alter("the most iterations", upsert("bob", SHA_512, 16384)),
    alter("too few iterations", upsert("low", SHA_256, 4095)),
    alter("too many iterations", upsert("high", SHA_512, 16385)),
    alter("no iterations", upsert("none", SHA_512, -1)),
    alter("no name", upsert("")),
    alter("no name and no mechanism", upsert("", 0)),
    alter("mechanism 0", upsert("zero", 0)),
    alter("mechanism 3 and too few iterations", upsert("three", 3, 1)),
    alter("no salted password", upsert("empty", password=b"")),
    alter("a long salted password", upsert("long", password=b"x" * 300)),
    alter("a name that is not ASCII", upsert("zoë\U0001f600")),
    alter("one user twice", upsert("twice"), upsert("twice", SHA_512), upsert("beside")),
    alter("one user three times", upsert("thrice"), upsert("thrice"), upsert("thrice")),
    alter("one user wrong, then right", upsert("wrong", 9), upsert("wrong")),
    alter("one user right, then wrong", upsert("right"), upsert("right", 9)),
    alter("deleted and set", ("alice", SHA_256), upsert("alice", SHA_512)),
    alter("deleted twice", ("alice", SHA_256), ("alice", SHA_512)),
    alter("no credential of that mechanism", ("bob", SHA_256)),
    alter("unknown user deleted, then set", ("nobody", SHA_256), upsert("nobody")),
    alter("deletion without a name", ("", SHA_256)),
    alter("deletion with an unknown mechanism", ("bob", 0)),
    alter("deletion", ("alice", SHA_256)),
    alter("deletion again", ("alice", SHA_256)),
    alter("good, bad, new and gone", ("bob", SHA_512), ("ghost", 1), upsert("carol"), upsert("", 1), upsert("x", 7)),
    alter("many", *map(upsert, MANY)),
    alter("many deleted, many set", *((user, SHA_256) for user in MANY[:20]), *map(upsert, MANY[20:])),
    alter("so many that a thirteenth counts", *map(upsert, [*MANY[:13], MANY[0]])),
    alter("so many deleted that a thirteenth counts", *((user, SHA_256) for user in [*MANY[20:33], MANY[24]])),
    Case("describe one", DescribeUserScramCredentialsRequest(users=[UserName(name="alice")])),
    Case("describe two", DescribeUserScramCredentialsRequest(users=[UserName(name="alice"), UserName(name="")])),
    Case("describe none", DescribeUserScramCredentialsRequest(users=[])),
    *(Case(f"handshake {v}", SaslHandshakeRequest(mechanism="PLAIN"), v) for v in (0, 1)),
    *(Case(f"authenticate {v}", SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), v) for v in (0, 1, 2)),
]


def run(side: Any) -> dict[str, Any]:
    side.new_records()
    found: dict[str, Any] = side.outcomes(CASES)
    return found


@pytest.mark.parametrize("name", [each.name for each in CASES])
def test_responses_and_records_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]


@pytest.mark.parametrize("level", ["3.5-IV1", "3.5-IV2"])
def test_scram_came_with_a_level(on_both: Any, level: str) -> None:
    theirs, ours = on_both(run, level)
    assert ours == theirs
    supported = any(records for _, records in ours.values())
    assert supported == (level == "3.5-IV2")


def is_silent(side: Any) -> bool:
    """Return True if a request for all users gets no answer, and no later request does either."""
    everybody = DescribeUserScramCredentialsRequest(users=None)
    requests = write_request(everybody, 0, 1, "parity") + write_request(SaslHandshakeRequest(), 1, 2, "parity")
    side.connection.sendall(requests)
    side.connection.settimeout(SILENCE_SECONDS)
    try:
        side.connection.recv(1)
    except TimeoutError:
        return True
    return False


def test_describe_all_users_has_no_response(on_both: Any) -> None:
    assert on_both(is_silent) == (True, True)
