"""AlterUserScramCredentials and DescribeUserScramCredentials."""

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest

from ...conftest import Cluster

SHA_256 = 1
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
