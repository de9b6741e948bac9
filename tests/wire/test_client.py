"""The client connection: handshake, order, timeouts, malformed responses, and its side of TLS and SASL."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka.certificates import CertificateAuthority
from mockraft.kafka_api.clock import VirtualClock
from mockraft.wire import api_keys, client, error_codes, sasl
from mockraft.wire.client import (
    DisconnectedError,
    KafkaConnection,
    RequestTimedOutError,
    UnsupportedVersionError,
    connect,
)
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import FrameReader, Request, parse_request, write_response
from mockraft.wire.errors import WireError
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.pkcs12 import own_in_pem
from mockraft.wire.sasl import SaslLogin
from mockraft.wire.scram import ScramUser

from ..rows import each_row

Answer = Callable[[Request], Awaitable[bytes | None]]
OFFERED = [
    ApiVersion(api_key=api_keys.API_VERSIONS, min_version=0, max_version=4),
    ApiVersion(api_key=api_keys.BROKER_HEARTBEAT, min_version=0, max_version=1),
]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[tuple[int, list[Request]]]:
    """A listener that sends the result of `answer` for each request; None closes the connection."""
    seen: list[Request] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        try:
            while data := await reader.read(65536):
                for frame in frames.receive_data(data):
                    seen.append(parse_request(frame))
                    reply = await answer(seen[-1])
                    if reply is None:
                        return
                    writer.write(reply)
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], seen
    finally:
        listening.close()


def versions_reply(request: Request, error_code: int = 0, version: int | None = None) -> bytes:
    response = ApiVersionsResponse(error_code=error_code, api_keys=OFFERED)
    return write_response(
        response.write(request.api_version if version is None else version), request.correlation_id, 0
    )


def heartbeat_reply(request: Request, correlation_id: int | None = None) -> bytes:
    body = BrokerHeartbeatResponse(is_caught_up=True).write(request.api_version)
    return write_response(body, request.correlation_id if correlation_id is None else correlation_id, 1)


def after_handshake(reply: Callable[[Request], bytes | None]) -> Answer:
    """A server that answers ApiVersions, and this to the rest."""

    async def answer(request: Request) -> bytes | None:
        return versions_reply(request) if request.api_key == api_keys.API_VERSIONS else reply(request)

    return answer


well = after_handshake(heartbeat_reply)


@asynccontextmanager
async def connected(
    answer: Answer, request_timeout_ms: int = 30_000
) -> AsyncIterator[tuple[KafkaConnection, list[Request]]]:
    async with server(answer) as (port, seen):
        connection = KafkaConnection("7", request_timeout_ms)
        await connection.open("127.0.0.1", port)
        try:
            yield connection, seen
        finally:
            await connection.close()


async def test_uses_the_newest_common_version_after_the_handshake() -> None:
    async with connected(well) as (connection, seen):
        response = await connection.send(BrokerHeartbeatRequest(broker_id=7))
        assert response.is_caught_up
        assert [(r.api_key, r.api_version, r.client_id) for r in seen] == [(18, 5, "7"), (63, 1, "7")]


async def test_numbers_requests_as_kafkas_network_client_does() -> None:
    async with connected(well) as (connection, seen):
        for _ in range(3):
            await connection.send(BrokerHeartbeatRequest())
        assert [r.correlation_id for r in seen] == [1, 0, 2, 3], "the handshake comes after the first request was made"


async def test_connections_of_one_client_share_their_numbers() -> None:
    ids = itertools.count()
    async with server(well) as (port, seen):
        for _ in range(2):
            connection = KafkaConnection("raft-client-7", correlation_ids=ids)
            await connection.open("127.0.0.1", port)
            await connection.send(BrokerHeartbeatRequest())
            await connection.close()
        assert [r.correlation_id for r in seen] == [1, 0, 3, 2]


async def test_several_requests_under_way_get_their_own_answers() -> None:
    def echo_epoch(request: Request) -> bytes:
        sent = BrokerHeartbeatRequest.read(request.frame[request.body_offset :], request.api_version)
        body = BrokerHeartbeatResponse(throttle_time_ms=sent.broker_epoch).write(request.api_version)
        return write_response(body, request.correlation_id, 1)

    async with connected(after_handshake(echo_epoch)) as (connection, _):
        sends = [connection.send(BrokerHeartbeatRequest(broker_epoch=n)) for n in range(20)]
        assert [r.throttle_time_ms for r in await asyncio.gather(*sends)] == list(range(20))


async def test_takes_an_older_handshake_when_the_newest_is_refused() -> None:
    async def old(request: Request) -> bytes | None:
        if request.api_version == 5:
            return versions_reply(request, error_codes.UNSUPPORTED_VERSION, version=0)
        return versions_reply(request)

    async with connected(old) as (connection, seen):
        assert [r.api_version for r in seen] == [5, 4]
        assert connection.api_versions[api_keys.BROKER_HEARTBEAT] == (0, 1)


async def test_names_the_api_that_the_server_lacks() -> None:
    async with connected(well) as (connection, _):
        with pytest.raises(UnsupportedVersionError, match="does not support AllocateProducerIds"):
            await connection.send(AllocateProducerIdsRequest())
        with pytest.raises(UnsupportedVersionError):
            connection.send_soon(AllocateProducerIdsRequest(), print)
        assert connection.is_open, "nothing was sent, so nothing is broken"


async def test_a_late_answer_ends_the_connection() -> None:
    never = asyncio.Event()

    async def silent(request: Request) -> bytes | None:
        if request.api_key != api_keys.API_VERSIONS:
            await never.wait()
        return versions_reply(request)

    async with connected(silent) as (connection, _):
        with pytest.raises(RequestTimedOutError, match="BrokerHeartbeat within 30 ms"):
            await connection.send(BrokerHeartbeatRequest(), timeout_ms=30)
        with pytest.raises(DisconnectedError):
            await connection.send(BrokerHeartbeatRequest())
        never.set()


async def test_a_close_by_the_other_side_reaches_every_waiting_request() -> None:
    async with connected(after_handshake(lambda request: None)) as (connection, _):
        sends = [connection.send(BrokerHeartbeatRequest()) for _ in range(3)]
        results = await asyncio.gather(*sends, return_exceptions=True)
        assert all(isinstance(result, DisconnectedError) for result in results)


@pytest.mark.parametrize(
    ("reply", "error", "expected"),
    [
        (lambda r: heartbeat_reply(r, r.correlation_id + 1), WireError, "correlation id"),
        (lambda r: heartbeat_reply(r)[:-1] + b"\xff", WireError, "."),
        (lambda r: b"\0\0\0\x02ab", WireError, "has no correlation id"),
        (lambda r: b"\xff\xff\xff\xff", WireError, "negative"),
        (lambda r: b"\x7f\xff\xff\xff", WireError, "the limit"),
        (lambda r: None, DisconnectedError, "."),
    ],
    ids=["wrong number", "bad body", "no number", "negative length", "huge length", "hanging up"],
)
async def test_an_answer_that_is_none_is_an_error_and_the_end(
    reply: Callable[[Request], bytes | None], error: type[Exception], expected: str
) -> None:
    async with connected(after_handshake(reply)) as (connection, _):
        with pytest.raises(error, match=expected):
            await connection.send(BrokerHeartbeatRequest())
        assert not connection.is_open
        assert not connection.send_soon(BrokerHeartbeatRequest(broker_id=1), print), "a closed one says no"
    async with connected(after_handshake(reply)) as (connection, _):
        assert isinstance(await called_back(connection), error)


async def test_an_unexpected_response_closes_the_connection() -> None:
    async def twice(request: Request) -> bytes | None:
        reply = versions_reply(request)
        return reply if request.api_key != api_keys.API_VERSIONS else reply + reply

    async with connected(twice) as (connection, _):
        with pytest.raises(DisconnectedError, match="nothing asked for"):
            await connection.send(BrokerHeartbeatRequest())


async def test_connection_refused_names_the_address() -> None:
    async with server(well) as (port, _):
        pass
    with pytest.raises(DisconnectedError, match=f"cannot connect to 127.0.0.1:{port}"):
        await connect("127.0.0.1", port)


async def test_closing_does_not_wait_for_a_peer_that_never_reads() -> None:
    async def read_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()
        await closed.wait()
        writer.close()

    closed = asyncio.Event()
    listening = await asyncio.start_server(read_nothing, "127.0.0.1", 0)
    connection = await connect("127.0.0.1", listening.sockets[0].getsockname()[1], handshake=False)
    huge = BrokerHeartbeatRequest(offline_log_dirs=[b"d" * 16] * 1_000_000)
    sending = asyncio.ensure_future(connection.send(huge, version=1))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await connection.close()
    with pytest.raises(DisconnectedError, match="closed by this side"):
        await sending
    closed.set()
    listening.close()


async def test_closing_twice_is_closing_once() -> None:
    async with connected(well) as (connection, _):
        await connection.close()
        await connection.close()
        assert not connection.is_open


async def called_back(connection: KafkaConnection) -> object:
    """The outcome passed to the callback of `send_soon`."""
    came: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    tasks = asyncio.all_tasks()
    assert connection.send_soon(BrokerHeartbeatRequest(broker_id=1), came.set_result)
    assert asyncio.all_tasks() == tasks
    return await asyncio.wait_for(came, 10)


async def test_an_answer_can_be_called_back_without_a_task() -> None:
    async with connected(well) as (connection, _):
        response = await called_back(connection)
        assert isinstance(response, BrokerHeartbeatResponse)
        assert response.is_caught_up


async def test_an_aborted_connection_fails_pending_requests() -> None:
    async def silent(request: Request) -> bytes | None:
        if request.api_key == api_keys.API_VERSIONS:
            return versions_reply(request)
        await asyncio.Event().wait()
        return None

    async with connected(silent) as (connection, _):
        waiting = asyncio.ensure_future(called_back(connection))
        await asyncio.sleep(0)
        connection.break_off()
        result = await waiting
        assert isinstance(result, DisconnectedError)
        assert str(result) == "broken off by this side"


pytestmark = pytest.mark.programs

ALICE = SaslLogin("PLAIN", "alice", "alice-secret")
BOB = {name: SaslLogin(name, "bo,b=", "bob-secret") for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def controller(authority: CertificateAuthority) -> Callable[..., Controller]:
    """`controller(protocol, **options)`: users alice (PLAIN) and bo,b= (SCRAM)."""
    certificate = authority.issue("/CN=controller")

    def make(protocol: str, **options: Any) -> Controller:
        return Controller(
            **{
                "security_protocol": protocol,
                "ssl_certificate_file": certificate.certificate,
                "ssl_key_file": certificate.key,
                "ssl_truststore_file": authority.certificate,
                "sasl_enabled_mechanisms": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
                "plain_users": {"alice": "alice-secret"},
                "scram_users": tuple(ScramUser("bo,b=", "bob-secret", name) for name in BOB),
                "connection_failed_authentication_delay_ms": 0,
                **options,
            }
        )

    return make


async def logged_in(to: Controller, security: ClientSecurity) -> client.KafkaConnection:
    return await client.connect(to.host, to.port, client_id="test", security=security)


@pytest.mark.parametrize("login", [ALICE, *BOB.values()], ids=lambda login: login.mechanism)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_logs_in(
    controller: Callable[..., Controller], authority: CertificateAuthority, protocol: str, login: SaslLogin
) -> None:
    async with controller(protocol) as running:
        connection = await logged_in(running, ClientSecurity(protocol, authority.certificate, login=login))
        assert (await connection.send(DescribeClusterRequest(endpoint_type=2))).error_code == 0
        await connection.close()
        assert running.journal.exchanges()[-1].principal == f"User:{login.user}"


async def test_shows_its_certificate(controller: Callable[..., Controller], authority: CertificateAuthority) -> None:
    keystore = authority.issue("/O=mockraft/CN=b").keystore
    async with controller("SSL", ssl_client_auth="required") as running:
        connection = await logged_in(running, ClientSecurity("SSL", authority.certificate, keystore))
        await connection.close()
        assert running.journal.exchanges()[-1].principal == "User:CN=b,O=mockraft"


@pytest.mark.parametrize("password", ["changeit", None])
async def test_keys_and_authorities_are_in_pkcs12_or_encrypted_pem(
    controller: Callable[..., Controller], authority: CertificateAuthority, tmp_path: Path, password: str | None
) -> None:
    own, key, trusted = tmp_path / "own.p12", tmp_path / "key.pem", tmp_path / "trusted.p12"
    certificate = authority.issue("/CN=b")
    secret = f"pass:{password or ''}"
    export = ("openssl", "pkcs12", "-export", "-passout", secret)
    for command in (
        (*export, "-in", certificate.keystore, "-certfile", authority.certificate, "-out", own),
        (*export, "-nokeys", "-in", authority.certificate, "-out", trusted),
        (
            "openssl",
            "pkey",
            "-in",
            certificate.key,
            "-out",
            key,
            *(("-aes256", "-passout", secret) if password else ()),
        ),
    ):
        subprocess.run(command, check=True)
    in_pkcs12 = ClientSecurity(
        "SSL", trusted, own, checks_host=False, key_password=password, truststore_password=password
    )
    in_pem = ClientSecurity(
        "SSL", authority.certificate, certificate.certificate, key, checks_host=False, key_password=password
    )
    stores = {"ssl_certificate_file": own, "ssl_key_file": None, "ssl_truststore_file": trusted}
    passwords = {"ssl_key_password": password, "ssl_truststore_password": password}
    async with controller("SSL", ssl_client_auth="required", **stores, **passwords) as running:
        for security in (in_pkcs12, in_pem):
            await (await logged_in(running, security)).close()
        assert {exchange.principal for exchange in running.journal.exchanges()} == {"User:CN=b"}
    with pytest.raises(ValueError, match=r"own\.p12: the password has a null character"):
        own_in_pem(own, "a\0b")


@pytest.mark.parametrize(
    ("login", "expected"),
    [
        (SaslLogin("PLAIN", "alice", "wrong"), "Invalid username or password"),
        (SaslLogin("SCRAM-SHA-256", "bo,b=", "wrong"), "invalid credentials with SASL mechanism SCRAM-SHA-256"),
        (SaslLogin("SCRAM-SHA-512", "nobody", "wrong"), "invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
async def test_wrong_credentials_fail_authentication(
    controller: Callable[..., Controller], login: SaslLogin, expected: str
) -> None:
    async with controller("SASL_PLAINTEXT") as running:
        with pytest.raises(client.AuthenticationFailedError, match=expected):
            await logged_in(running, ClientSecurity("SASL_PLAINTEXT", login=login))


async def test_a_mechanism_that_is_not_enabled_is_named(controller: Callable[..., Controller]) -> None:
    async with controller("SASL_PLAINTEXT", sasl_enabled_mechanisms=("SCRAM-SHA-512",)) as running:
        with pytest.raises(
            client.AuthenticationFailedError, match="UNSUPPORTED_SASL_MECHANISM, it takes SCRAM-SHA-512"
        ):
            await logged_in(running, ClientSecurity("SASL_PLAINTEXT", login=ALICE))


async def test_an_untrusted_server_is_refused(controller: Callable[..., Controller], tmp_path: Path) -> None:
    stranger = CertificateAuthority(tmp_path)
    async with controller("SASL_SSL") as running:
        with pytest.raises(client.DisconnectedError, match="certificate verify failed"):
            await logged_in(running, ClientSecurity("SASL_SSL", stranger.certificate, login=ALICE))
        assert running.journal.exchanges() == []


async def test_logs_in_again_before_the_session_is_over(
    controller: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_SESSION_PART_USED", 0.0)
    clock = VirtualClock()
    async with controller("SASL_PLAINTEXT", connections_max_reauth_ms=60_000, clock=clock) as running:
        connection = await logged_in(running, ClientSecurity("SASL_PLAINTEXT", login=ALICE))
        # Time passes on the server: a second must lie between log-ins.
        for _ in range(3):
            clock.advance(2_000)
            assert (await connection.send(DescribeClusterRequest(endpoint_type=2))).error_code == 0
        await connection.close()
        assert len(running.journal.exchanges(api_keys.SASL_HANDSHAKE)) >= 4


@each_row(
    "challenge",
    [
        b"",
        b"e=no",
        b"r=other-nonce,s=AAAA,i=4096",
        b"r=nonce,s=AAAA,i=4096",
        b"r=nonce1,s=AAAA,i=2147483647",
        b"r=nonce1,s=A,i=4096",
    ],
)
def test_invalid_scram_server_messages_are_refused(challenge: bytes) -> None:
    tokens = sasl.tokens(BOB["SCRAM-SHA-256"], "nonce")
    assert next(tokens) == b"n,,n=bo=2Cb=3D,r=nonce"
    with pytest.raises(sasl.SaslError):
        tokens.send(challenge)


def test_a_server_signature_must_match() -> None:
    tokens = sasl.tokens(BOB["SCRAM-SHA-256"], "nonce")
    next(tokens)
    tokens.send(b"r=nonce1,s=AAAA,i=4096")
    with pytest.raises(sasl.SaslError, match="does not know the password"):
        tokens.send(b"v=AAAA")
