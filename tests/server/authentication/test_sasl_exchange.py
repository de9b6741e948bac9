import base64
import json
import re
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mockraft.kafka_api.authentication.sasl_exchange import TAKEN, SaslExchange, SaslState
from mockraft.wire import api_keys, error_codes, sasl
from mockraft.wire.connection import write_request
from mockraft.wire.message import Message
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest

from ...budgets import budget
from ...rows import each_row
from ..conftest import START_MS
from .conftest import DELAY_MS

WRONG_PLAIN = "Authentication failed: Invalid username or password"


def nothing_told(mechanism: str) -> str:
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [
        ("PLAIN", "alice", "alice-secret"),
        ("PLAIN", "ärger", "€uro"),
        ("SCRAM-SHA-256", "bob", "bob-secret"),
        ("SCRAM-SHA-512", "bob", "bob-secret"),
    ],
)
def test_requests_have_the_authenticated_principal(peer: Any, mechanism: str, user: str, password: str) -> None:
    assert peer.versions().error_code == 0
    response = peer.log_in(mechanism, user, password)
    assert (response.error_code, response.error_message, response.session_lifetime_ms) == (0, "", 0)
    assert peer.ask(DescribeClusterRequest(endpoint_type=2), 2).error_code == 0
    exchanges = peer.listener.node.journal.exchanges()
    assert {exchange.principal for exchange in exchanges[:-1]} == {"User:ANONYMOUS"}
    assert exchanges[-1].principal == f"User:{user}"
    assert exchanges[-1].to_json()["principal"] == f"User:{user}"
    assert not peer.listener.node._logins.count


def test_authorizer_receives_the_authenticated_principal(make_listener: Any) -> None:
    listener = make_listener(super_users="User:bob")
    alice, bob = listener.connect(), listener.connect()
    alice.log_in("PLAIN", "alice", "alice-secret")
    bob.log_in("SCRAM-SHA-256", "bob", "bob-secret")
    request = DescribeClusterRequest(endpoint_type=2)
    assert alice.ask(request, 2).error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED
    assert bob.ask(request, 2).error_code == 0


@pytest.mark.parametrize(
    ("mechanism", "user"), [("PLAIN", "alice"), ("SCRAM-SHA-256", "bob"), ("SCRAM-SHA-512", "bob")]
)
def test_a_wrong_password_is_refused_late_with_the_reason_in_the_journal_only(
    peer: Any, mechanism: str, user: str
) -> None:
    peer.handshake(mechanism)
    login = sasl.tokens(sasl.SaslLogin(mechanism, user, "wrong"), "nonce")
    token = next(login)
    if mechanism != "PLAIN":
        token = login.send(peer.authenticate(token).auth_bytes)
    peer.request(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert peer.data == b""
    assert peer.closed is None
    assert peer.listener.node.journal.closed()[-1].reason == f"refused: {mechanism}: wrong password of {user!r}"
    peer.wait(DELAY_MS - 1)
    assert peer.data == b""
    peer.wait(1)
    response = peer.response(SaslAuthenticateRequest(), 2)
    assert response.error_code == error_codes.SASL_AUTHENTICATION_FAILED
    assert response.error_message == (WRONG_PLAIN if mechanism == "PLAIN" else nothing_told(mechanism))
    assert peer.closed is not None
    assert peer.listener.node.journal.closed_by_reason == {"authentication": 1}


@pytest.mark.parametrize(
    ("token", "client_message"),
    [
        (b"\0alice\0alice-secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0alice-secret\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0nobody\0alice-secret", WRONG_PLAIN),
        (b"\0alice\0alice-secre", WRONG_PLAIN),
        (b"\0\xff\xfe\0alice-secret", WRONG_PLAIN),
        (
            b"root\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_plain_errors_have_kafkas_text(peer: Any, token: bytes, client_message: str) -> None:
    peer.handshake("PLAIN")
    response = peer.refused(token)
    assert (response.error_code, response.error_message) == (error_codes.SASL_AUTHENTICATION_FAILED, client_message)


def test_plain_lets_one_act_as_oneself(peer: Any) -> None:
    peer.handshake("PLAIN")
    assert peer.authenticate(b"alice\0alice\0alice-secret").error_code == 0


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b"n,,n=eve,r=1", "no user 'eve'"),
        (b"n,,n=bob,r=", "first message is malformed"),
        (b"y,,n=bob,r=1", "first message is malformed"),
        (b"p=tls-unique,,n=bob,r=1", "first message is malformed"),
        (b"n,,n=b\xc3\xb6b,r=1", "first message is malformed"),
        (b"n,,n=bo=2Db,r=1", "first message is malformed"),
        (b"n,a=eve,n=bob,r=1", "requested authorization as 'eve'"),
        (b"n,,n=" + b"b" * 9_000 + b",r=1", "the first message has 9009 bytes"),
        (b"n,,n=no-token,r=1,tokenauth=true", "no delegation token 'no-token'"),
    ],
)
def test_scrams_first_message_is_refused_with_the_reason_in_the_journal_alone(
    peer: Any, token: bytes, reason: str
) -> None:
    peer.handshake("SCRAM-SHA-256")
    message = peer.refused(token).error_message
    assert reason in peer.listener.node.journal.closed()[-1].reason
    assert message == nothing_told("SCRAM-SHA-256") or "authorization id" in message


@pytest.mark.parametrize("change", ["nonce", "proof", "short proof", "no proof", "nothing"])
def test_scrams_last_message_must_prove_the_password(peer: Any, change: str) -> None:
    peer.handshake("SCRAM-SHA-256")
    challenge = peer.authenticate(b"n,,n=bob,r=abc").auth_bytes.decode()
    nonce = challenge.split(",")[0][2:]
    assert nonce.startswith("abc")
    assert len(nonce) > 20
    proof = base64.b64encode(bytes(32)).decode()
    final = {
        "nonce": f"c=biws,r={nonce}x,p={proof}",
        "proof": f"c=biws,r={nonce},p={proof}",
        "short proof": f"c=biws,r={nonce},p=AAAA",
        "no proof": f"c=biws,r={nonce}",
        "nothing": "",
    }[change]
    assert peer.refused(final.encode()).error_message == nothing_told("SCRAM-SHA-256")
    assert peer.closed is not None


KEY = Ed25519PrivateKey.generate()
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC = json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(KEY.public_key()))
NOW_S = START_MS // 1000
CLAIMS = {"sub": "alice", "aud": "kafka", "iss": "issuer", "iat": NOW_S, "exp": NOW_S + 60}
DEEP = base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=")


def signed(kid: str | None = "a", key: Any = KEY, algorithm: str = "EdDSA", **claims: Any) -> str:
    present = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(present, key, algorithm, headers={"kid": kid} if kid else None)


@each_row(
    ("token", "reason"),
    {
        "valid": (signed(), None),
        "a user with spaces around": (signed(sub=" alice "), None),
        "for several": (signed(aud=["other", "kafka"]), None),
        "ended within the clocks' skew": (signed(exp=NOW_S - 29), None),
        "ended": (signed(exp=NOW_S - 31), "it ended 31 s ago"),
        "begins": (signed(nbf=NOW_S + 31), "it begins in 31 s"),
        "another key": (signed(key=Ed25519PrivateKey.generate()), "Signature verification failed"),
        "a key that is not there": (signed("b"), "the JWKS has no key 'b'"),
        "no key named, of two": (signed(None), "the JWKS has no key None"),
        "a secret": (signed(key="x" * 64, algorithm="HS256"), "The specified alg value is not allowed"),
        "half a surrogate pair": (signed(sub="\ud800"), "it has no sub"),
        "unsecured": (sasl.unsecured_token("alice"), "The specified alg value is not allowed|no key"),
        "RS256 for another kind of key": (signed(key=RSA_KEY, algorithm="RS256"), "OAUTHBEARER"),
        "ES256 for another kind of key": (signed(key=EC_KEY, algorithm="ES256"), "OAUTHBEARER"),
        "another audience": (signed(aud="other"), "Audience doesn't match"),
        "another issuer": (signed(iss="other"), "Invalid issuer"),
        "no issue": (signed(iat=None), 'Token is missing the "iat" claim'),
        "no end": (signed(exp=None), 'Token is missing the "exp" claim'),
        "an end without end": (signed(exp=10**400), "its exp is no time"),
        "deep": (f"{DEEP}.{DEEP}.x", "nested too deep|Invalid"),
    },
)
def test_a_signed_token_must_have_what_kafka_asks_for(
    make_listener: Any, tmp_path: Path, token: str, reason: str | None
) -> None:
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [{**PUBLIC, "kid": "a"}, {**PUBLIC, "kid": "another"}]}))
    peer = make_listener(
        sasl_enabled_mechanisms=("OAUTHBEARER",),
        sasl_oauthbearer_jwks_endpoint_url=keys.as_uri(),
        sasl_oauthbearer_expected_audience=("kafka",),
        sasl_oauthbearer_expected_issuer="issuer",
        scram_users=(),
    ).connect()
    peer.handshake("OAUTHBEARER")
    response = peer.authenticate(f"n,,\x01auth=Bearer {token}\x01\x01".encode())
    if reason is None:
        assert (response.error_code, response.auth_bytes) == (0, b"")
        assert peer.ask(DescribeClusterRequest(endpoint_type=2), 2).error_code == 0
        assert peer.listener.node.journal.exchanges()[-1].principal == "User:alice"
    else:
        assert response.auth_bytes == b'{"status":"invalid_token"}'
        assert peer.refused(b"\x01").error_message == '{"status":"invalid_token"}'
        assert re.search(reason, peer.listener.node.journal.closed()[-1].reason)


@each_row(
    ("content", "reason"),
    {
        "no file": (None, "No such file"),
        "no JSON": ("{", "no JWKS"),
        "deep": ("[" * 200_000, "no JWKS"),
        "no keys": ('{"keys": []}', "no JWKS"),
        "another tree": ("[1]", "no JWKS"),
        "an id that is no text": (json.dumps({"keys": [{**PUBLIC, "kid": []}]}), "no JWKS"),
        "an algorithm without a key": (json.dumps({"keys": [{**PUBLIC, "alg": "none"}]}), "no JWKS"),
        "half a key": ('{"keys": [{"kty": "RSA", "n": "AQ"}]}', "no JWKS"),
    },
)
def test_a_jwks_that_cannot_be_read_is_named(
    make_listener: Any, tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "jwks.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=f"sasl_oauthbearer_jwks_endpoint_url=.*jwks.json: {reason}"):
        make_listener(sasl_enabled_mechanisms=("OAUTHBEARER",), sasl_oauthbearer_jwks_endpoint_url=str(path))


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are(make_listener: Any) -> None:
    peer = make_listener(sasl_enabled_mechanisms=("PLAIN",)).connect()
    peer.request(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    peer.wait(DELAY_MS)
    response = peer.response(SaslHandshakeRequest(), 1)
    assert (response.error_code, response.mechanisms) == (error_codes.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])
    assert peer.closed is not None


REQUESTS = {
    api_keys.API_VERSIONS: (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
    api_keys.SASL_HANDSHAKE: (SaslHandshakeRequest(mechanism="PLAIN"), 1),
    api_keys.SASL_AUTHENTICATE: (SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2),
    api_keys.BROKER_HEARTBEAT: (BrokerHeartbeatRequest(), 1),
    api_keys.CREATE_TOPICS: (CreateTopicsRequest(), 7),
}
WAY_TO: dict[SaslState, list[tuple[Message, int]]] = {
    SaslState.INITIAL_REQUEST: [],
    SaslState.HANDSHAKE_OR_VERSIONS_REQUEST: [(ApiVersionsRequest(), 3)],
    SaslState.HANDSHAKE_REQUEST: [REQUESTS[api_keys.API_VERSIONS]],
    SaslState.AUTHENTICATE: [REQUESTS[api_keys.SASL_HANDSHAKE]],
}


@pytest.mark.parametrize("state", WAY_TO, ids=lambda state: state.name)
@pytest.mark.parametrize("api_key", REQUESTS, ids=api_keys.name)
def test_each_state_accepts_only_kafkas_requests(peer: Any, state: SaslState, api_key: int) -> None:
    for request, version in WAY_TO[state]:
        peer.ask(request, version)
    request, version = REQUESTS[api_key]
    peer.request(request, version)
    if api_key in TAKEN[state]:
        assert peer.response(request, version).error_code == 0
        assert peer.closed is None
        return
    peer.wait(DELAY_MS)
    assert peer.closed is not None
    if state is not SaslState.AUTHENTICATE:
        assert peer.data == b""
    elif api_key == api_keys.SASL_HANDSHAKE:
        assert peer.response(request, version).error_code == error_codes.ILLEGAL_SASL_STATE


def test_api_versions_may_be_repeated_after_a_refusal(peer: Any) -> None:
    assert peer.versions(version=4, name="no name!").error_code == error_codes.INVALID_REQUEST
    assert peer.versions(version=3).error_code == 0
    peer.request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    peer.wait(DELAY_MS)
    assert peer.closed is not None


def test_after_a_handshake_of_version_0_tokens_come_without_headers(peer: Any) -> None:
    assert peer.handshake("PLAIN", version=0).error_code == 0
    token = b"\0alice\0alice-secret"
    peer.send(len(token).to_bytes(4, "big") + token)
    assert peer.frames() == [b""]
    assert peer.ask(DescribeClusterRequest(endpoint_type=2), 2).error_code == 0
    assert peer.listener.node.journal.exchanges()[-1].principal == "User:alice"


def test_wrong_bare_token_closes_the_connection_without_a_response(peer: Any) -> None:
    peer.handshake("PLAIN", version=0)
    peer.send(b"\0\0\0\x04\0a\0b")
    peer.wait(DELAY_MS)
    assert (peer.data, bool(peer.closed)) == (b"", True)


def test_a_failure_of_the_exchange_itself_is_not_the_clients(peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SaslExchange, "_evaluate", lambda _exchange, _token: 1 // 0)
    peer.handshake("PLAIN")
    peer.request(SaslAuthenticateRequest(auth_bytes=b""), 2)
    peer.wait(DELAY_MS)
    broke, closed = peer.listener.node.journal.entries[-2:]
    assert "ZeroDivisionError" in broke.failure
    assert (peer.closed, closed.refused) == ("its login broke; the error is mockraft's", False)


def test_authenticated_connection_without_session_lifetime_cannot_reauthenticate(peer: Any) -> None:
    peer.log_in("PLAIN", "alice", "alice-secret")
    assert peer.handshake("PLAIN").error_code == error_codes.ILLEGAL_SASL_STATE
    assert peer.authenticate(b"").error_code == error_codes.ILLEGAL_SASL_STATE
    assert peer.closed is None


class TestSessions:
    """`connections.max.reauth.ms` (KIP-368)."""

    @pytest.fixture
    def peer(self, make_listener: Any) -> Any:
        peer = make_listener(connections_max_reauth_ms=10_000).connect()
        assert peer.log_in("PLAIN", "alice", "alice-secret").session_lifetime_ms == 10_000
        return peer

    def test_a_session_that_is_over_ends_with_the_next_request(self, peer: Any) -> None:
        peer.wait(10_000)
        assert peer.versions().error_code == 0
        peer.wait(1)
        peer.request(DescribeClusterRequest(), 2)
        assert peer.closed == "refused: the session of User:alice is over"
        assert peer.listener.node.journal.closed_by_reason == {"session": 1}

    @pytest.mark.parametrize("after_ms", [9_000, 60_000])
    def test_logging_in_again_begins_a_new_session(self, peer: Any, after_ms: int) -> None:
        peer.wait(after_ms)
        assert peer.log_in("PLAIN", "alice", "alice-secret").session_lifetime_ms == 10_000
        peer.wait(9_000)
        assert peer.ask(DescribeClusterRequest(endpoint_type=2), 2).error_code == 0

    def test_not_twice_in_a_second(self, peer: Any) -> None:
        peer.log_in("PLAIN", "alice", "alice-secret")
        peer.wait(999)
        assert peer.handshake("PLAIN").error_code == error_codes.ILLEGAL_SASL_STATE
        peer.wait(1)
        assert peer.handshake("PLAIN").error_code == 0

    def test_reauthentication_keeps_the_principal(self, make_listener: Any) -> None:
        users = {"alice": "a", "carol": "c"}
        peer = make_listener(connections_max_reauth_ms=10_000, plain_users=users).connect()
        peer.log_in("PLAIN", "alice", "a")
        peer.handshake("PLAIN")
        message = peer.refused(b"\0carol\0c").error_message
        assert message == "Cannot change principals during re-authentication from User.alice: User.carol"

    def test_the_mechanism_stays(self, peer: Any) -> None:
        assert peer.handshake("SCRAM-SHA-256").error_code == 0
        peer.request(SaslAuthenticateRequest(auth_bytes=b"n,,n=bob,r=1"), 2)
        peer.wait(DELAY_MS)
        assert (peer.data, bool(peer.closed)) == (b"", True)

    def test_a_wrong_password_ends_the_connection(self, peer: Any) -> None:
        peer.handshake("PLAIN")
        assert peer.refused(b"\0alice").error_code == error_codes.SASL_AUTHENTICATION_FAILED
        assert peer.closed is not None


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "PLAINTEXT"])
def test_a_password_is_not_in_the_journal(make_listener: Any, protocol: str) -> None:
    peer = make_listener(security_protocol=protocol).connect()
    peer.handshake("PLAIN")
    peer.authenticate(b"\0alice\0alice-secret")
    assert len(peer.listener.node.journal.exchanges(api_keys.SASL_AUTHENTICATE)) == 1
    assert "alice-secret" not in "".join(peer.listener.node.journal.json_lines())
    assert all(b"alice-secret" not in entry.request_frame for entry in peer.listener.node.journal.exchanges())


CLIENT_FRAMES = [write_request(request, version, 1, "test")[4:] for request, version in REQUESTS.values()] + [
    b"\0alice\0alice-secret",
    b"n,,n=bob,r=1",
    b"c=biws,r=1,p=AAAA",
]


FRAMES = st.one_of(
    st.sampled_from(CLIENT_FRAMES),
    st.binary(max_size=64),
    st.builds(
        lambda frame, at, put: frame[:at] + put + frame[at + len(put) :],
        st.sampled_from(CLIENT_FRAMES),
        st.integers(0, 60),
        st.binary(max_size=6),
    ),
)


@settings(max_examples=budget(100, 500), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FRAMES, max_size=6))
def test_arbitrary_unauthenticated_bytes_are_answered_or_closed_but_never_accepted(
    make_listener: Any, frames: list[bytes]
) -> None:
    peer = make_listener(plain_users={"alice": "a-password-that-is-in-no-frame"}).connect()
    for frame in frames:
        peer.send(len(frame).to_bytes(4, "big") + frame)
        peer.frames()
    peer.wait(DELAY_MS)
    node = peer.listener.node
    assert {exchange.principal for exchange in node.journal.exchanges()} <= {"User:ANONYMOUS"}
    assert (peer.closed is None) == (node.connections == 1)
    assert "Traceback" not in "".join(node.journal.json_lines())
    peer.wait(30_000)
    assert peer.closed is not None
    assert node.connections == node.received_bytes == 0
