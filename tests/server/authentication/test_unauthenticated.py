"""Limits for unauthenticated clients: none of them can exhaust the process."""

import base64
from collections.abc import Callable
from typing import Any

from mockraft import stub
from mockraft.kafka_api.effects import Close
from mockraft.wire import error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest

LOG_INS = 5_000


def test_thousands_of_wrong_passwords_leave_no_state(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(journal_entries_max=100)
    for _ in range(LOG_INS):
        log_in_wrongly(listener, b"\0alice\0wrong")
        assert listener.node.connections == 0
    gate = listener.node._logins
    assert (gate.count, len(gate._refusals)) == (0, LOG_INS)
    effects = listener.advance(100)
    assert len([effect for effect in effects if isinstance(effect, Close)]) == LOG_INS
    assert len(gate._refusals) == 0
    assert len(listener.node.journal.entries) == 100
    assert listener.node.journal.closed_by_reason == {"authentication": LOG_INS}
    assert not listener.node.next_tick_ms(listener.now_ms) < listener.now_ms


def test_journal_contains_no_authentication_bytes(make_listener: Callable[..., Any]) -> None:
    listener = make_listener()
    log_in_wrongly(listener, b"\0alice\0" + bytes(400_000))
    exchange = listener.node.journal.exchanges()[-1]
    assert exchange.request.auth_bytes == b""


def test_whoever_is_turned_away_counts_as_a_connection_until_it_is_over(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(connections_max=2)
    for _ in range(2):
        log_in_wrongly(listener)
    assert "connections_max=2" in listener.connect().closed
    listener.advance(100)
    assert listener.connect().closed is None


def test_whoever_is_turned_away_is_forgotten_when_they_go_first(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(connection_failed_authentication_delay_ms=3_600_000)
    for _ in range(100):
        peer = listener.connect()
        peer.send(b"\0\0\0\x04what")
        listener.node.disconnected(peer.connection_id, "the peer closed", listener.now_ms)
    assert len(listener.node._logins._refusals) == 0


def test_later_bytes_of_a_failed_client_are_not_parsed(peer: Any) -> None:
    peer.handshake("PLAIN")
    peer.request(SaslAuthenticateRequest(auth_bytes=b"wrong"), 2)
    for _ in range(3):
        peer.request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2)
    peer.wait(100)
    assert peer.response(SaslAuthenticateRequest(), 2).error_code == error_codes.SASL_AUTHENTICATION_FAILED
    assert peer.listener.node.received_bytes == 0


def test_unauthenticated_connections_are_limited_in_number_and_time(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(unauthenticated_connections_max=3, authentication_timeout_ms=1_000)
    forget = listener.connect()
    forget.log_in("PLAIN", "alice", "alice-secret")
    other = listener.connect("10.0.0.1")
    oldest, *strangers = (listener.connect() for _ in range(4))
    closed = listener.node.journal.closed()
    assert [each.connection_id for each in closed] == [oldest.connection_id, strangers[0].connection_id]
    assert "unauthenticated_connections_max=3: the oldest gives way" in closed[0].reason
    assert other.log_in("PLAIN", "alice", "alice-secret").error_code == 0, "a host with few keeps its place"
    strangers = [*strangers[1:], listener.connect()]
    listener.now_ms += 600
    strangers[0].log_in("PLAIN", "alice", "alice-secret")
    late = listener.connect()
    assert listener.node.next_tick_ms(listener.now_ms) <= listener.now_ms + 400
    listener.now_ms += 400
    effects = listener.node.tick(listener.now_ms)
    assert [effect.connection_id for effect in effects if isinstance(effect, Close)] == [
        stranger.connection_id for stranger in strangers[1:]
    ]
    assert late.log_in("PLAIN", "alice", "alice-secret").error_code == 0
    assert listener.node.journal.closed_by_reason["authentication_timeout_ms"] == 2
    assert forget.ask(DescribeClusterRequest(endpoint_type=2), 2).error_code == 0


def test_limits_the_frame_size_of_unauthenticated_clients(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(sasl_server_max_receive_size=1_000)
    stranger, forget = listener.connect(), listener.connect()
    stranger.send((1_001).to_bytes(4, "big"))
    assert "a frame of 1001 bytes; the limit is 1000 (sasl.server.max.receive.size, before login)" in stranger.closed
    forget.log_in("PLAIN", "alice", "alice-secret")
    forget.send((1_001).to_bytes(4, "big"))
    assert forget.closed is None
    other = listener.connect()
    other.log_in("PLAIN", "alice", "alice-secret")
    other.send((104_857_601).to_bytes(4, "big"))
    assert other.closed.endswith("the limit is 104857600 (socket.request.max.bytes)")


def test_partial_unauthenticated_frames_leave_room_for_authenticated_clients(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(received_bytes_max=80_000)
    forget = listener.connect()
    forget.log_in("PLAIN", "alice", "alice-secret")
    strangers = [listener.connect() for _ in range(4)]
    for stranger in strangers:
        stranger.send((100_000).to_bytes(4, "big") + bytes(3_996))
    assert [stranger.closed is None for stranger in strangers] == [True, True, False, False]
    forget.send((100_000).to_bytes(4, "big") + bytes(60_000))
    assert forget.closed is None


def log_in_wrongly(listener: Any, token: bytes = b"wrong") -> Any:
    peer = listener.connect()
    peer.handshake("PLAIN")
    peer.request(SaslAuthenticateRequest(auth_bytes=token), 2)
    return peer


def test_a_plaintext_listener_authenticates_at_once(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(security_protocol="PLAINTEXT")
    assert listener.connect().ask(DescribeClusterRequest(endpoint_type=2), 2).error_code == 0
    assert listener.node._logins.count == 0


def test_a_token_is_good_until_it_expires(make_listener: Callable[..., Any]) -> None:
    listener = make_listener(delegation_token_secret_key="key", delegation_token_expiry_time_ms=60_000)
    owner = listener.connect()
    owner.log_in("PLAIN", "alice", "alice-secret")
    token = owner.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
    password = base64.b64encode(token.hmac).decode()
    holder = listener.connect()
    response = holder.log_in("SCRAM-SHA-256", token.token_id, password, is_token=True)
    assert (response.error_code, response.session_lifetime_ms) == (0, 60_000)
    refused = holder.ask(CreateDelegationTokenRequest(), 3)
    assert refused.error_code == error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert listener.node.journal.exchanges()[-1].principal == "User:alice"
    holder.wait(60_001)
    holder.request(DescribeClusterRequest(), 2)
    assert holder.closed == "refused: the session of User:alice is over"


def test_stubs_match_requests_before_authentication(make_listener: Callable[..., Any]) -> None:
    listener = make_listener()
    stubs = listener.node.script.stubs
    stubs.add(stub("SaslHandshake").once().inject_error("UNSUPPORTED_SASL_MECHANISM"))
    late = stubs.add(stub("SaslAuthenticate").delay_on(100))
    assert listener.connect().handshake("PLAIN").error_code == 33
    peer = listener.connect()
    assert peer.handshake("PLAIN").error_code == 0
    peer.request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2)
    assert peer.frames() == []
    peer.wait(100)
    assert peer.response(SaslAuthenticateRequest(), 2).error_code == 0
    assert b"alice-secret" not in late.calls[-1].request_frame
    stubs.add(stub("ApiVersions").disconnect_on())
    peer = listener.connect()
    peer.request(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
    assert peer.closed == "disconnected (stub stub-3)"
