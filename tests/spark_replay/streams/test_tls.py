"""TLS connections, made by OpenSSL in memory, and read with the key log of their client."""

import contextlib
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from mockraft.kafka.certificates import CertificateAuthority
from mockraft.spark_replay.key_logs import KeyLogError, read_key_log

from ...rows import each_row
from ..packetiser import PORT, Said, Segment, conversation, exchanges, request, response
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
    no_middle = written(tmp_path / "late.pcap", talk.segments[9:])
    path = written(tmp_path / "x.pcap", talk.segments)
    for capture, key_log, detail in (
        (path, None, ""),
        (path, other.key_log, f"{other.key_log} has no secrets of this connection"),
        (no_middle, talk.key_log, "starts in the middle of a connection"),
        (written(tmp_path / "cbc.pcap", cbc.segments), cbc.key_log, "cipher suite 0xc023 is not supported"),
    ):
        rows, events = read(capture, key_log=key_log)
        assert rows == []
        assert next(each["detail"] for each in events if each["kind"] == "tls").startswith(detail)


def test_a_key_log_may_be_in_a_pcapng(tmp_path: Path, ends: Ends) -> None:
    talk = ends.talk("in-a-file.log", said=SAID[:2])
    capture, found = written(tmp_path / "x.pcap", talk.segments), tmp_path / "x.pcapng"
    subprocess.run(["editcap", "--inject-secrets", f"tls,{talk.key_log}", capture, found], check=True, timeout=60)
    assert read_key_log(str(found)).secrets == read_key_log(str(talk.key_log)).secrets
    assert len(read(found, key_log=found)[0]) == 2
    with pytest.raises(KeyLogError, match="has no line of a key log"):
        read(found, key_log=capture)
    with pytest.raises(KeyLogError, match=r"no\.log: No such file"):
        read(found, key_log=tmp_path / "no.log")
