"""SASL on a listener without it: both requests are refused, and the connection goes on."""

from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest


@pytest.mark.parametrize("version", [0, 1])
def test_no_mechanism_is_offered(rig: Any, version: int) -> None:
    response = rig.ask(rig.connect(), SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), version)
    assert (response.error_code, response.mechanisms) == (error_codes.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_refuses_authentication(rig: Any, version: int) -> None:
    connection = rig.connect()
    response = rig.ask(connection, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), version)
    assert (response.error_code, response.auth_bytes) == (error_codes.ILLEGAL_SASL_STATE, b"")
    assert response.error_message == "SaslAuthenticate request received after successful authentication"
    assert rig.ask(connection, SaslHandshakeRequest(), 1).error_code == error_codes.ILLEGAL_SASL_STATE
