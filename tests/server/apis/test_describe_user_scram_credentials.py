from typing import Any

import pytest
from mockraft.server.apis import describe_user_scram_credentials, sasl_handshake
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest, UserName
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest


@pytest.fixture
def rig(make_rig: Any, controller: Any) -> Any:
    return make_rig(describe_user_scram_credentials.API, sasl_handshake.API, controller=controller)


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
