"""TLS: certificates, reload, and distinguished names."""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mockraft import Controller
from mockraft.kafka.certificates import CertificateAuthority
from mockraft.kafka_api.authentication.distinguished_name import PrincipalMapper, subject_of
from mockraft.kafka_api.clock import VirtualClock
from mockraft.kafka_api.shell import FIRST_FLIGHT_BYTES_MAX, Shell
from mockraft.kafka_api.tls import TlsError, TlsSession, server_context
from mockraft.server.config import ControllerConfig
from mockraft.wire import api_keys
from mockraft.wire.connection import FrameReader, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..fetches import fetch_request
from ..rows import each_row
from ..waiting import until
from .conftest import Party

pytestmark = pytest.mark.programs

DEADLINE_S = 60.0
VERSIONS = write_request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, 1, "test")


class Client:
    """The other end of a TlsSession."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def shake(self) -> bytes:
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()


def connected(context: ssl.SSLContext, client: Client, chunk: int = 1 << 20) -> TlsSession:
    session = TlsSession(context)
    while data := client.shake():
        for start in range(0, len(data), chunk):
            assert session.receive(data[start : start + chunk]) == b""
        client.incoming.write(session.outgoing())
    return session


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_encrypted_bytes_are_decrypted_for_any_segmentation(party: Party, chunk: int) -> None:
    client = Client(party.client_context())
    session = connected(server_context(ControllerConfig(**party.options())), client, chunk)
    assert session.established
    assert session.peer_certificate is None
    client.tls.write(b"x" * 100_000)
    data = client.outgoing.read()
    got = b"".join(session.receive(data[start : start + chunk]) for start in range(0, len(data), chunk))
    assert got == b"x" * 100_000
    session.send(b"answer")
    client.incoming.write(session.outgoing())
    assert client.tls.read(100) == b"answer"


def test_peer_certificate_is_available_on_request(party: Party) -> None:
    client = Client(party.client_context(party.client))
    session = connected(server_context(ControllerConfig(**party.options("required"))), client)
    # The certificate comes with the client's last flight, after the client thinks that it is done.
    assert session.peer_certificate == der_of(party.client.certificate)


def test_end_of_stream_is_reported(party: Party) -> None:
    client = Client(party.client_context())
    session = connected(server_context(ControllerConfig(**party.options())), client)
    client.tls.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    assert session.receive(client.outgoing.read()) == b"last"
    assert session.ended


@pytest.mark.parametrize(
    "garbage", [VERSIONS, b"GET / HTTP/1.1\r\n\r\n", bytes(600), b"\x16\x03\x01\xff\xff" + bytes(70_000)]
)
def test_bytes_other_than_tls_are_refused(party: Party, garbage: bytes) -> None:
    session = TlsSession(server_context(ControllerConfig(**party.options())))
    with pytest.raises(TlsError):
        session.receive(garbage)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 600), st.binary(min_size=1, max_size=8))
def test_a_damaged_handshake_is_waited_for_or_refused(party: Party, at: int, put: bytes) -> None:
    hello = Client(party.client_context()).shake()
    session = TlsSession(server_context(ControllerConfig(**party.options())))
    with contextlib.suppress(TlsError):
        assert session.receive(hello[:at] + put + hello[at + len(put) :]) == b""
    assert not session.established


@pytest.mark.parametrize("wrong", ["ssl_certificate_file", "ssl_key_file", "ssl_truststore_file"])
def test_files_that_are_no_pem_are_named(party: Party, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "no.pem"
    path.write_text("no PEM")
    with pytest.raises(ValueError, match=str(path)):
        server_context(ControllerConfig(**party.options() | {wrong: path}))


async def ask(host: str, port: int, context: ssl.SSLContext) -> bytes:
    """The response frame to an ApiVersions over TLS."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname="localhost")
        writer.write(VERSIONS)
        frames: list[bytes] = []
        frame_reader = FrameReader()
        while not frames:
            data = await reader.read(1 << 16)
            assert data
            frames = frame_reader.receive_data(data)
        writer.close()
        await writer.wait_closed()
    return frames[0]


async def test_answers_over_tls_and_ends_cleanly(party: Party) -> None:
    async with Controller(**party.options()) as controller:
        assert (await ask(controller.host, controller.port, party.client_context()))[:4] == b"\0\0\0\x01"
        await until(lambda: controller.journal.closed())
        assert [closed.reason for closed in controller.journal.closed()] == ["the peer closed"]
        (exchange,) = controller.journal.exchanges(api_keys.API_VERSIONS)
        assert exchange.principal == "User:ANONYMOUS"


async def test_a_certificate_is_a_principal(party: Party) -> None:
    async with Controller(**party.options("requested")) as controller:
        await ask(controller.host, controller.port, party.client_context(party.client))
        await ask(controller.host, controller.port, party.client_context())
        principals = [exchange.principal for exchange in controller.journal.exchanges()]
    assert principals == ["User:CN=broker,O=mockraft", "User:ANONYMOUS"]


async def test_rules_make_a_certificate_a_short_name(party: Party) -> None:
    rules = "RULE:^CN=(.*?),O=mockraft$/$1/"
    async with Controller(**party.options("required", ssl_principal_mapping_rules=rules)) as controller:
        await ask(controller.host, controller.port, party.client_context(party.client))
        assert controller.journal.exchanges()[0].principal == "User:broker"


async def test_a_certificate_that_no_rule_names_is_turned_away(party: Party) -> None:
    rules = "RULE:^CN=nobody$/nobody/"
    async with Controller(**party.options("required", ssl_principal_mapping_rules=rules)) as controller:
        with pytest.raises((AssertionError, ConnectionError)):
            await ask(controller.host, controller.port, party.client_context(party.client))
        assert "no rule" in controller.journal.closed()[0].reason


async def test_required_client_certificate_is_enforced(party: Party, tmp_path: Path) -> None:
    stranger = CertificateAuthority(tmp_path).issue("/CN=broker")
    async with Controller(**party.options("required")) as controller:
        for certificate in (None, stranger):
            with pytest.raises((AssertionError, ConnectionError, ssl.SSLError)):
                await ask(controller.host, controller.port, party.client_context(certificate))
        await until(lambda: len(controller.journal.closed()) == 2)
        reasons = [closed.reason for closed in controller.journal.closed()]
        assert "peer did not return a certificate" in reasons[0]
        assert "the certificate is not accepted" in reasons[1]
        assert controller.journal.exchanges() == []


async def test_plaintext_on_a_tls_port_is_closed_with_the_reason_in_the_journal(party: Party) -> None:
    async with Controller(**party.options()) as controller, asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(controller.host, controller.port)
        writer.write(VERSIONS)
        assert await reader.read() == b"", "an alert would look like a frame"
        writer.close()
        await writer.wait_closed()
        assert controller.journal.closed_by_reason == {"no_tls": 1}


async def test_slow_handshakes_end_and_so_many_at_most_are_under_way(party: Party) -> None:
    clock = VirtualClock()
    options = party.options(authentication_timeout_ms=400, unauthenticated_connections_max=3, clock=clock)
    async with Controller(**options) as controller, asyncio.timeout(DEADLINE_S):
        slow = [await asyncio.open_connection(controller.host, controller.port) for _ in range(5)]
        for _, writer in slow:
            writer.write(b"\x16\x03\x01")
        counts = controller.journal.closed_by_reason
        await until(lambda: counts["unauthenticated_connections_max"] == 2)
        clock.advance(399)
        assert controller.running.node.connections == 3
        clock.advance(1)
        for reader, writer in slow:
            # What was refused before it was read is reset.
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.transport.abort()
        assert counts == {"unauthenticated_connections_max": 2, "authentication_timeout_ms": 3}
        await ask(controller.host, controller.port, party.client_context())


async def test_a_handshake_waits_for_its_turn_and_has_a_limit_meanwhile(
    party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shell, "is_late", lambda self: True)
    async with Controller(**party.options()) as controller, asyncio.timeout(DEADLINE_S):
        await ask(controller.host, controller.port, party.client_context())
        monkeypatch.setattr(controller.running.listener.turns, "add", lambda connection, share: None)
        _, writer = await asyncio.open_connection(controller.host, controller.port)
        writer.write(b"\x16\x03\x01" + bytes(FIRST_FLIGHT_BYTES_MAX))
        await until(lambda: controller.journal.closed_by_reason["tls"] == 1)
        assert f"begins with more than {FIRST_FLIGHT_BYTES_MAX} bytes" in controller.journal.closed()[-1].reason
        writer.close()


async def test_response_due_after_the_peers_end_is_dropped(party: Party) -> None:
    async with Controller(**party.options(), metadata_max_idle_interval_ms=3_600_000) as controller:
        async with asyncio.timeout(DEADLINE_S):
            context = party.client_context()
            _, writer = await asyncio.open_connection(
                controller.host, controller.port, ssl=context, server_hostname="localhost"
            )
            log = controller.running.controller.log
            fetch = fetch_request(log.end_offset, log.leader_epoch, max_wait_ms=20_000)
            writer.write(write_request(fetch, 17, 3, "raft"))
            await until(lambda: controller.running.node.parked == 1)
            # The end comes, and the answer becomes due, before the loop has told that the connection is gone.
            (peer,) = controller.running.listener.connections()
            peer.close()
            later_ms = controller.running.clock.now_ms() + 30_000
            controller.running.listener.perform(controller.running.node.tick(later_ms), later_ms)
            assert controller.running.node.parked == 0
            writer.transport.abort()
            await ask(controller.host, controller.port, party.client_context())


# What Java's X500Principal.getName() says of the same certificates.
JAVA = {
    "/O=mockraft/CN=broker-1": "CN=broker-1,O=mockraft",
    "/C=DE/ST=Bavaria/L=Munich/O=Ex, Inc./CN=b": "CN=b,O=Ex\\, Inc.,L=Munich,ST=Bavaria,C=DE",
    '/CN= b"<>;#=\\\\ünï ': 'CN=\\ b\\"\\<\\>\\;\\#\\=\\\\ünï\\ ',
    "/O=mockraft/CN=broker-1/emailAddress=a@b.c": "1.2.840.113549.1.9.1=#16056140622e63,CN=broker-1,O=mockraft",
    "/DC=org/DC=ex/UID=42+CN=multi/serialNumber=7": "2.5.4.5=#130137,CN=multi+UID=42,DC=ex,DC=org",
}


def der_of(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


@pytest.mark.parametrize("subject", JAVA)
def test_a_subject_is_written_as_java_writes_it(party: Party, subject: str) -> None:
    assert subject_of(der_of(party.authority.issue(subject, file_name="holder").certificate)) == JAVA[subject]


@given(st.binary(max_size=80))
def test_invalid_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not an X\.509 certificate"):
        subject_of(data)


@each_row(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("", "CN=a,O=b", LookupError),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?),O=.*$/$1/L, DEFAULT", "CN=Kafka,O=x", "kafka"),
        ("RULE:^CN=(.*?),O=.*$/$1/U,DEFAULT", "CN=Kafka,O=x", "KAFKA"),
        ("RULE:^CN=(.*?),O=.*$/$1/U,DEFAULT", "CN=Kafka,OU=x", "CN=Kafka,OU=x"),
        ("RULE:^CN=(.*?),O=(.*)$/$1@$2/", "CN=a,O=b", "a@b"),
        ("RULE:^CN=(.*?),O=(.*)$/$1@$3/", "CN=a,O=b", "a@$3"),
        ("RULE:^CN=(.*?),O=.*$/$12/", "CN=a,O=b", "a2"),
        ("RULE:^CN=(.*?),O=.*$/$0!/", "CN=a,O=b", "CN=a,O=b!"),
        ("RULE:CN=(.*?), O=.*/$1/ , DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=x$/y/", "CN=a", LookupError),
        ("RULE:^CN=(\\w+)$/\\/$1\\$/", "CN=a", "/a$"),
    ],
)
def test_rules_name_the_user_as_in_kafka(rules: str, name: str, expected: Any) -> None:
    mapper = PrincipalMapper(rules)
    if expected is LookupError:
        with pytest.raises(LookupError):
            mapper.name_of(name)
    else:
        assert mapper.name_of(name) == expected


@each_row("rules", ["default", "RULE:a/b", "RULE:a/b/X", "RULE:(/b/", "DEFAULT, what"])
def test_invalid_rule_is_refused_at_start(rules: str) -> None:
    with pytest.raises(ValueError, match="ssl_principal_mapping_rules"):
        PrincipalMapper(rules)
