"""The client's side of TLS and SASL, against mockraft's controller; tests/real_kafka has Kafka's."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka.certificates import CertificateAuthority
from mockraft.kafka_api.clock import VirtualClock
from mockraft.wire import api_keys, client, sasl
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.sasl import SaslLogin
from mockraft.wire.scram import ScramUser

from ..rows import each_row

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


async def connected(to: Controller, security: ClientSecurity) -> client.KafkaConnection:
    return await client.connect(to.host, to.port, client_id="test", security=security)


@pytest.mark.parametrize("login", [ALICE, *BOB.values()], ids=lambda login: login.mechanism)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_logs_in(
    controller: Callable[..., Controller], authority: CertificateAuthority, protocol: str, login: SaslLogin
) -> None:
    async with controller(protocol) as running:
        connection = await connected(running, ClientSecurity(protocol, authority.certificate, login=login))
        assert (await connection.send(DescribeClusterRequest(endpoint_type=2))).error_code == 0
        await connection.close()
        assert running.journal.exchanges()[-1].principal == f"User:{login.user}"


async def test_shows_its_certificate(controller: Callable[..., Controller], authority: CertificateAuthority) -> None:
    keystore = authority.issue("/O=mockraft/CN=b").keystore
    async with controller("SSL", ssl_client_auth="required") as running:
        connection = await connected(running, ClientSecurity("SSL", authority.certificate, keystore))
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
            await (await connected(running, security)).close()
        assert {exchange.principal for exchange in running.journal.exchanges()} == {"User:CN=b"}


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
            await connected(running, ClientSecurity("SASL_PLAINTEXT", login=login))


async def test_a_mechanism_that_is_not_enabled_is_named(controller: Callable[..., Controller]) -> None:
    async with controller("SASL_PLAINTEXT", sasl_enabled_mechanisms=("SCRAM-SHA-512",)) as running:
        with pytest.raises(
            client.AuthenticationFailedError, match="UNSUPPORTED_SASL_MECHANISM, it takes SCRAM-SHA-512"
        ):
            await connected(running, ClientSecurity("SASL_PLAINTEXT", login=ALICE))


async def test_an_untrusted_server_is_refused(controller: Callable[..., Controller], tmp_path: Path) -> None:
    stranger = CertificateAuthority(tmp_path)
    async with controller("SASL_SSL") as running:
        with pytest.raises(client.DisconnectedError, match="certificate verify failed"):
            await connected(running, ClientSecurity("SASL_SSL", stranger.certificate, login=ALICE))
        assert running.journal.exchanges() == []


async def test_logs_in_again_before_the_session_is_over(
    controller: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_SESSION_PART_USED", 0.0)
    clock = VirtualClock()
    async with controller("SASL_PLAINTEXT", connections_max_reauth_ms=60_000, clock=clock) as running:
        connection = await connected(running, ClientSecurity("SASL_PLAINTEXT", login=ALICE))
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
