"""TLS connections, made by OpenSSL in memory, and read with the key log of their client."""

import contextlib
import ssl
from collections.abc import Iterable
from pathlib import Path
from struct import pack
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from mockraft.kafka.certificates import CertificateAuthority
from mockraft.spark_replay.key_logs import KeyLog, KeyLogError, read_key_log

from ...rows import each_row
from ..capture_bytes import block, pcapng
from ..packetiser import PORT, Said, Segment, conversation, exchanges, packets, request, response
from .reassembled import Row, kinds, read, read_sorted, written

pytestmark = pytest.mark.programs

SAID = [
    *exchanges(12),
    request(41, bytes(20_000)),
    response(41),
    request(42),
    response(42, bytes(20_000)),
    *exchanges(9),
]


class Sealed(NamedTuple):
    """Bytes of a TLS connection, and their sender."""

    from_client: bool
    data: bytes


class Talk(NamedTuple):
    """A connection's bytes, and the key log of its client."""

    sealed: list[Sealed]
    key_log: Path

    @property
    def segments(self) -> list[Segment]:
        return conversation(self.sealed)  # type: ignore[arg-type]


class Ends:
    """Contexts of a client and a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        authority = CertificateAuthority(folder)
        own = authority.issue("/CN=controller")
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(own.certificate, own.key)
        self.authority = authority.certificate

    def talk(self, name: str, suite: str | None = None, said: Iterable[Said] = SAID) -> Talk:
        """Exchange frames; in TLS 1.2 with a cipher suite, else in TLS 1.3."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.keylog_filename = str(self.folder / name)
        if suite is not None:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(suite)
        to_server, to_client, sealed = ssl.MemoryBIO(), ssl.MemoryBIO(), list[Sealed]()
        outgoing, received = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(to_client, outgoing, server_hostname="localhost")
        server = self.server.wrap_bio(to_server, received, server_side=True)

        def carry(from_client: bool) -> bool:
            data = (outgoing if from_client else received).read()
            (to_server if from_client else to_client).write(data)
            if data:
                sealed.append(Sealed(from_client, data))
            return bool(data)

        for side in (client, server, client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
            carry(side is client)
        for each in said:
            (client if each.from_client else server).write(each.data)
            carry(each.from_client)
        return Talk(sealed, self.folder / name)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Ends:
    return Ends(tmp_path_factory.mktemp("tls"))


def bodies(rows: list[Row]) -> list[tuple[bool, bytes]]:
    return sorted((not row["is_response"], row["frame"]) for row in rows)


def unchunked(said: Iterable[Said]) -> list[tuple[bool, bytes]]:
    return sorted((each.from_client, each.frame) for each in said)


@each_row(
    "suite",
    {
        "TLS 1.3": None,
        "AES-128": "ECDHE-ECDSA-AES128-GCM-SHA256",
        "AES-256": "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ChaCha20": "ECDHE-ECDSA-CHACHA20-POLY1305",
    },
)
def test_frames_are_read_with_the_key_log(tmp_path: Path, ends: Ends, suite: str | None) -> None:
    talk = ends.talk(f"{suite}.log", suite)
    path = written(tmp_path / "x.pcap", talk.segments)
    rows, events = read(path, key_log=talk.key_log)
    assert bodies(rows) == unchunked(SAID)
    assert {row["pair_status"] for row in rows} == {"paired"}
    whole = sum(len(each.data) for each in talk.sealed)
    assert kinds(events) == {"syn": 0, "sealed": whole - sum(len(each.data) for each in SAID)}
    for chunk_bytes in (4_000, 30_000):
        assert read(path, chunk_bytes=chunk_bytes, key_log=talk.key_log)[0] == rows
        found = read_sorted(path, (PORT,), chunk_bytes, 100, read_key_log(str(talk.key_log)))[0]
        assert bodies(found) == bodies(rows)


@each_row("suite", {"TLS 1.3": None, "TLS 1.2": "ECDHE-ECDSA-CHACHA20-POLY1305"})
def test_a_lost_segment_loses_only_the_frames_with_bytes_in_it(tmp_path: Path, ends: Ends, suite: str | None) -> None:
    talk = ends.talk(f"lost-{suite}.log", suite)
    segments = talk.segments
    first = next(index for index, each in enumerate(segments) if each.payload[:1] == b"\x17") + 10
    lost = [
        first,
        first + 3,
        first + 6,
        next(i for i, each in enumerate(segments) if len(each.payload) == 1448 and i > 20),
    ]
    left = [each for index, each in enumerate(segments) if index not in lost]
    rows, events = read(written(tmp_path / "x.pcap", left), key_log=talk.key_log)
    assert len(set(unchunked(SAID)) - set(bodies(rows))) == len(lost)
    assert set(bodies(rows)) <= set(unchunked(SAID))
    assert [each["kind"] for each in events].count("gap") == len(lost)


def test_without_their_secrets_connections_are_reported(tmp_path: Path, ends: Ends) -> None:
    talk, other = ends.talk("one.log"), ends.talk("other.log")
    cbc = ends.talk("cbc.log", "ECDHE-ECDSA-AES128-SHA256")
    late = written(tmp_path / "late.pcap", talk.segments[9:])
    path = written(tmp_path / "x.pcap", talk.segments)
    for capture, ports, key_log, detail in (
        (path, (PORT,), None, ""),
        (path, (PORT,), other.key_log, f"{other.key_log} has no secrets of this connection"),
        (late, (PORT,), talk.key_log, "starts in the middle of a connection"),
        (late, (), talk.key_log, "starts in the middle of a connection"),
        (written(tmp_path / "cbc.pcap", cbc.segments), (PORT,), cbc.key_log, "cipher suite 0xc023 is not supported"),
    ):
        rows, events = read(capture, ports, key_log=key_log)
        assert rows == []
        (event,) = (each for each in events if each["kind"] == "tls")
        assert event["detail"].startswith(detail)


@each_row(
    ("order", "at"), {"in front": ("<", 0), "big-endian": (">", 0), "behind the hello": ("<", 8), "last": ("<", -1)}
)
def test_secrets_in_a_pcapng_are_used_by_themselves(tmp_path: Path, ends: Ends, order: str, at: int) -> None:
    talk = ends.talk("in-a-file.log", said=SAID[:6])
    some, text = packets(talk.segments), talk.key_log.read_bytes()
    whole, start = pcapng(some, order=order), len(pcapng(some[: at % (len(some) + 1)], order=order))
    secrets = block(10, pack(f"{order}II", 0x544C534B, len(text)) + text, order)
    path = tmp_path / "x.pcapng"
    path.write_bytes(whole[:start] + secrets + whole[start:])
    rows, _ = read(path)
    assert bodies(rows) == unchunked(SAID[:6])
    assert bodies(read_sorted(path, (PORT,), 1000, 100, KeyLog())[0]) == bodies(rows)


def test_keys_are_updated(tmp_path: Path, ends: Ends) -> None:
    talk = ends.talk("update.log", said=SAID[:6])
    line = next(each for each in talk.key_log.read_text().splitlines() if each.startswith("CLIENT_TRAFFIC_SECRET_0"))
    secret = bytes.fromhex(line.split()[2])
    sealed = [
        *talk.sealed,
        Sealed(True, sealed_record(secret, 3, b"\x18\0\0\1\0\x16")),
        Sealed(True, sealed_record(expanded(secret, "traffic upd", 48), 0, request(77).data + b"\x17")),
    ]
    rows, _ = read(written(tmp_path / "x.pcap", talk._replace(sealed=sealed).segments), key_log=talk.key_log)
    assert bodies(rows) == unchunked([*SAID[:6], request(77)])


def expanded(secret: bytes, label: str, size: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446, 7.1."""
    info = pack(">HB", size, len(label) + 6) + b"tls13 " + label.encode() + b"\0"
    return HKDFExpand(SHA384(), size, info).derive(secret)


def sealed_record(secret: bytes, number: int, inner: bytes) -> bytes:
    """A record of TLS_AES_256_GCM_SHA384."""
    head = pack(">BHH", 23, 0x303, len(inner) + 16)
    nonce = int.from_bytes(expanded(secret, "iv", 12), "big") ^ number
    return head + AESGCM(expanded(secret, "key", 32)).encrypt(nonce.to_bytes(12, "big"), inner, head)


def test_a_key_log_has_secrets(tmp_path: Path) -> None:
    capture = written(tmp_path / "x.pcap", [])
    with pytest.raises(KeyLogError, match="has no line of a key log"):
        read(capture, key_log=capture)
    with pytest.raises(KeyLogError, match=r"no\.log: cannot be opened: No such file"):
        read(capture, key_log=tmp_path / "no.log")
