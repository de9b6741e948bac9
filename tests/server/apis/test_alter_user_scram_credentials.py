"""AlterUserScramCredentials and DescribeUserScramCredentials."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.server.apis.alter_user_scram_credentials import API
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest

from ...conftest import Cluster

SHA_256, SHA_512 = 1, 2
Alter = Callable[..., dict[str, tuple[int, str | None]]]


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"salted") -> Any:
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password
    )


@pytest.fixture
def alter(cluster: Cluster) -> Alter:
    """`alter(*changes)`: code and message by user; deletions are given as (user, mechanism)."""

    def send(*changes: Any) -> dict[str, tuple[int, str | None]]:
        deletions = [ScramCredentialDeletion(name=c[0], mechanism=c[1]) for c in changes if isinstance(c, tuple)]
        upsertions = [c for c in changes if not isinstance(c, tuple)]
        response = cluster.ask(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions))
        return {each.user: (each.error_code, each.error_message) for each in response.results}

    return send


def test_the_keys_are_those_of_the_rfc(cluster: Cluster, alter: Alter) -> None:
    """The exchange of RFC 7677: its proof and signature follow from the keys that are kept."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    change = ScramCredentialUpsertion(name="user", mechanism=1, iterations=4096, salt=salt, salted_password=salted)
    assert alter(change) == {"user": (0, None)}
    ((record, version),) = cluster.written()
    assert (version, record.name, record.mechanism, record.salt, record.iterations) == (0, "user", 1, salt, 4096)
    assert base64.b64encode(record.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(record.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_credentials_beyond_one_batch_are_an_unknown_error(
    cluster: Cluster, alter: Alter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mockraft.server.controller.security.scram.RECORDS_PER_BATCH_MAX", 2)
    answers = alter(*(upsertion(name) for name in "abc"))
    assert {code for code, _ in answers.values()} == {error_codes.UNKNOWN_SERVER_ERROR}
    assert cluster.written() == []


def test_image_holds_the_latest_credential(cluster: Cluster, alter: Alter) -> None:
    alter(upsertion("alice"))
    alter(upsertion("alice", iterations=8192))
    scram = cluster.controller.image.security.scram
    assert {key: credential.iterations for key, credential in scram.items()} == {(SHA_256, "alice"): 8192}
    assert alter(("alice", SHA_256)) == {"alice": (0, None)}
    assert scram == {}


def test_deletions_come_first(cluster: Cluster, alter: Alter) -> None:
    alter(upsertion("gone"))
    alter(upsertion("new"), ("gone", SHA_256))
    names = [type(record).__name__ for record, _ in cluster.written()]
    assert names == ["RemoveUserScramCredentialRecord", "UserScramCredentialRecord"]


def test_an_empty_request_is_answered_emptily(cluster: Cluster, alter: Alter) -> None:
    assert alter() == {}
    assert cluster.written() == []


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (upsertion(""), error_codes.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("", 0), error_codes.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (("", 0), error_codes.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("u", 3, 1), error_codes.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (("u", 0), error_codes.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("u", password=b""), error_codes.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_invalid_alteration_is_refused_alone(
    cluster: Cluster, alter: Alter, change: Any, code: int, message: str | None
) -> None:
    user = change[0] if isinstance(change, tuple) else change.name
    assert alter(change, upsertion("right")) == {"right": (0, None), user: (code, message)}
    assert [record.name for record, _ in cluster.written()] == ["right"]


def test_the_first_thing_wrong_with_a_user_stays(alter: Alter) -> None:
    refusal = (error_codes.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    assert alter(upsertion("a", 9), upsertion("a")) == {"a": refusal}


def test_levels_before_3_5_iv2_have_no_scram(new_cluster: type[Cluster]) -> None:
    for level, code in ((10, error_codes.UNSUPPORTED_VERSION), (11, 0)):
        cluster = new_cluster(metadata_version=level)
        request = AlterUserScramCredentialsRequest(upsertions=[upsertion("a"), upsertion("")])
        first = {each.user: each.error_code for each in cluster.ask(request).results}["a"]
        assert first == code
        assert len(cluster.written()) == (1 if level == 11 else 0)


def test_error_response_names_each_user_once_in_alphabetical_order() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="b", mechanism=1), ScramCredentialDeletion(name="a", mechanism=1)],
        upsertions=[upsertion("\ufffd"), upsertion("\U0001f600"), upsertion("b")],
    )
    response = API.error(request, error_codes.NOT_CONTROLLER, "elsewhere")
    assert [each.user for each in response.results] == ["a", "b", "\U0001f600", "\ufffd"]
    assert {(each.error_code, each.error_message) for each in response.results} == {(41, "elsewhere")}


def test_a_controller_has_no_answer_for_users(rig: Any) -> None:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name="alice"), UserName(name="bob")])
    response = rig.ask(rig.connect(), request, 0)
    assert (response.error_code, response.error_message) == (error_codes.UNKNOWN_SERVER_ERROR, None)
    assert [(each.user, each.error_code, each.credential_infos) for each in response.results] == [("", -1, [])] * 2


def test_request_for_all_users_is_never_answered_nor_are_later_ones(rig: Any) -> None:
    connection = rig.connect()
    frames = rig.frame(DescribeUserScramCredentialsRequest(users=None), 0) + rig.frame(SaslHandshakeRequest(), 1)
    rig.send(connection, frames)
    rig.tick(rig.now_ms + 10_000_000)
    assert (rig.sends(), rig.closes(), rig.node.parked) == ([], [], 1)


def test_others_are_answered_meanwhile(rig: Any) -> None:
    rig.send(rig.connect(), rig.frame(DescribeUserScramCredentialsRequest(users=None), 0))
    assert rig.ask(rig.connect(), SaslHandshakeRequest(), 1).error_code == error_codes.ILLEGAL_SASL_STATE


def test_a_user_that_is_changed_twice_is_refused_and_others_are_not(cluster: Cluster, alter: Alter) -> None:
    alter(upsertion("alice"))
    twice = error_codes.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    changes = ("alice", SHA_256), upsertion("alice"), upsertion("bob"), upsertion("bob", SHA_512), upsertion("carol")
    assert alter(*changes) == {"alice": twice, "bob": twice, "carol": (0, None)}
    assert {at.record.name for at in cluster.written()} == {"carol"}
