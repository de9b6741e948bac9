"""TLS records of a connection to the bytes that they protect, with the secrets of a key log.

    Decryption     the streams of all connections: their records opened, and their contents passed on to `FrameReader`
    TlsConnection  a connection's cipher suite and its two sides, each with the key and the number of its next record

A record is opened with the key and the number that are next. If it cannot be, the side has changed its key (after the
handshake, by KeyUpdate): then it is record 0 of the next one. After a gap other numbers are tried as well, as many as
the missing bytes can hold; the number that opens it tells how many of the plain bytes are missing.

Source: RFC 8446 (TLS 1.3), RFC 5246, 5288 and 7905 (TLS 1.2 with AES-GCM and ChaCha20-Poly1305).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from mockraft.spark_replay.key_logs import KeyLog, capture_secrets
from mockraft.spark_replay.streams.connections import Connection, Direction, Hole
from mockraft.spark_replay.streams.frame_columns import Pieces, Stretch, joined
from mockraft.spark_replay.streams.frame_reader import FrameReader

_HEADER: Final = Struct(">BHH")
_CHANGE_CIPHER_SPEC, _HANDSHAKE, _DATA = 20, 22, 23
_CLIENT_HELLO, _SERVER_HELLO = b"\1", b"\2"
_HELLO_BODY, _RANDOM_BYTES, _FIELDS_BYTES_MAX = 9, 32, 300
_SUPPORTED_VERSIONS, _TLS_1_3 = 43, b"\x03\x04"
_RETRY: Final = hashlib.sha256(b"HelloRetryRequest").digest()
_RECORD_BYTES_MAX = (1 << 14) + 2048
_TAG_BYTES = 16
# What a client may send before its server's hello is read: a chunk has all bytes of one side, then of the other.
_UNREAD_BYTES_MAX = 64 << 20
# How many numbers are tried for records after gaps: so many at first, and one more for each two captured bytes.
_TRIALS, _TRIALS_MAX, _BYTES_PER_TRIAL = 1 << 8, 1 << 14, 2
_RECORD_START: Final = re.compile(rb"\x17\x03\x03")


class _Suite(NamedTuple):
    cipher: type[AESGCM | ChaCha20Poly1305]
    key_bytes: int
    hash_name: str


_AES128, _AES256 = _Suite(AESGCM, 16, "sha256"), _Suite(AESGCM, 32, "sha384")
_CHACHA: Final = _Suite(ChaCha20Poly1305, 32, "sha256")
_SUITES: Final = (
    dict.fromkeys((0x1301, 0x009C, 0x009E, 0xC02B, 0xC02D, 0xC02F, 0xC031), _AES128)
    | dict.fromkeys((0x1302, 0x009D, 0x009F, 0xC02C, 0xC02E, 0xC030, 0xC032), _AES256)
    | dict.fromkeys((0x1303, 0xCCA8, 0xCCA9, 0xCCAA), _CHACHA)
)


class _Key(NamedTuple):
    """A key of one side; `secret` is what the next one is made of, `explicit` the part of a nonce in each record."""

    cipher: AESGCM | ChaCha20Poly1305
    iv: bytes
    explicit: int
    secret: bytes


@dataclass(slots=True)
class TlsSide:
    """One side's records: `missing` bytes before `held`, the number of the next record, and the keys not yet over."""

    held: Stretch | None = None
    missing: int = 0
    number: int = 0
    keys: list[_Key] = field(default_factory=list)
    is_encrypted: bool = False
    trials: int = _TRIALS
    passed: int = 0

    @property
    def sealed_bytes(self) -> int:
        """Return the captured bytes of handshakes, of headers and tags, and of records that were not opened."""
        return self.passed + (len(self.held.data) if self.held else 0)


@dataclass(slots=True)
class TlsConnection:
    """A connection whose records are opened; `capture` is the file in which it begins."""

    capture: str
    client: TlsSide = field(default_factory=TlsSide)
    server: TlsSide = field(default_factory=TlsSide)
    random: bytes = b""
    suite: _Suite | None = None
    is_1_3: bool = False

    def of(self, direction: Direction) -> TlsSide:
        """Return the side of a direction."""
        return self.server if direction.is_response else self.client


class TlsError(ValueError):
    """Raised for records that cannot be opened, with the reason."""


class Decryption:
    """Opens records of connections, and passes their contents on to a frame reader as their streams."""

    def __init__(self, key_log: KeyLog, reader: FrameReader) -> None:
        self._key_log, self._reader = key_log, reader
        # Secrets found in captures so far, and those that follow.
        self._captures: dict[str, tuple[KeyLog, Iterator[tuple[bytes, str, bytes]]]] = {}

    def starter(self, connection: Connection, head: bytes) -> Callable[[Stretch], None] | None:
        """Return what begins with a client's first bytes, of which `head` are some; None without a key log."""
        capture = connection.chunk[0] if connection.chunk else ""
        random = head[_HELLO_BODY + 2 : _HELLO_BODY + 2 + _RANDOM_BYTES]
        if not self._key_log.path and not self._secrets(capture, random):
            return None
        connection.tls = TlsConnection(capture)
        return partial(self._start, connection)

    def _start(self, connection: Connection, first: Stretch) -> None:
        """Begin with a client's first bytes, and what its server has sent so far."""
        queue = connection.server.queue
        connection.server.queue, connection.server.queued_bytes = [], 0
        self.read_stretch(connection, connection.client, first)
        for each in queue:
            if isinstance(each, Stretch):
                self.read_stretch(connection, connection.server, each)
            else:
                self.gap(connection, connection.server, each.size)

    def read_stretch(self, connection: Connection, direction: Direction, stretch: Stretch) -> None:
        """Read the next bytes of a direction."""
        if direction.is_dead:
            self._reader.read_stretch(connection, direction, stretch)
            return
        _, side = _of(connection, direction)
        side.held = joined([side.held, stretch]) if side.held else stretch
        side.trials = min(_TRIALS_MAX, side.trials + len(stretch.data) // _BYTES_PER_TRIAL)
        try:
            self._advance(connection, direction)
        except TlsError as error:
            self._reader.close(connection, direction, "tls", int(stretch.pieces.ts_ns[-1]), str(error))
            for each in connection.sides:
                _, side = _of(connection, each)
                if side.held:
                    each.skip(len(side.held.data), int(side.held.pieces.ts_ns[0]))
                    side.held = None

    def hole(self, connection: Connection, direction: Direction, hole: Hole) -> None:
        """Handle bytes that were sent but not captured: no record is opened without its last bytes."""
        self.gap(connection, direction, hole.size)

    def gap(self, connection: Connection, direction: Direction, size: int) -> None:
        """Handle bytes that are missing in the capture."""
        if direction.is_dead:
            return
        _, side = _of(connection, direction)
        held = len(side.held.data) if side.held else 0
        side.missing += held + size
        side.passed += held
        side.held = None

    def _advance(self, connection: Connection, direction: Direction) -> None:
        """Open all whole records. Raises TlsError."""
        tls, side = _of(connection, direction)
        stretch = side.held
        if stretch is None:
            return
        data, at = stretch.data, 0
        found: list[tuple[bytes, int, int]] = []
        while True:
            if side.missing:
                self._pass_on(connection, direction, stretch, found)
                found = []
                at = self._resume(connection, direction, data, at)
                if side.missing:
                    break
            if at + _HEADER.size > len(data):
                break
            kind, version, length = _HEADER.unpack_from(data, at)
            if not _CHANGE_CIPHER_SPEC <= kind <= _DATA or version >> 8 != 3 or length > _RECORD_BYTES_MAX:
                raise TlsError(f"no TLS record: {data[at : at + 8].hex(' ')}")
            end = at + _HEADER.size + length
            if end > len(data) or not self._is_ready(tls, direction):
                break
            record = data[at:end]
            had_suite = tls.suite is not None
            content = self._content(tls, direction, kind, record)
            if tls.suite is not None and not had_suite:
                self._advance(connection, connection.client)
            side.passed += len(record) - len(content)
            if content:
                found.append((content, at, end))
            at = end
        side.held = stretch.cut(at, len(data)) if at < len(data) else None
        if side.held and not tls.suite and len(side.held.data) > _UNREAD_BYTES_MAX:
            raise TlsError("the ServerHello is not in the capture")
        self._pass_on(connection, direction, stretch, found)

    def _is_ready(self, tls: TlsConnection, direction: Direction) -> bool:
        """Return True if the next record can be read: the server's hello says how to read what follows the client's."""
        return tls.suite is not None or (direction.is_response if tls.random else not direction.is_response)

    def _pass_on(
        self, connection: Connection, direction: Direction, stretch: Stretch, found: list[tuple[bytes, int, int]]
    ) -> None:
        """Pass on the contents of records, each at the time at which it was whole."""
        if not found:
            return
        sizes = [len(content) for content, _, _ in found]
        offsets = [stretch.pieces.between(at, end).offset[0] for _, at, end in found]
        times = [stretch.pieces.time(end - 1) for _, _, end in found]
        starts = np.cumsum(sizes) - sizes
        pieces = Pieces(starts, np.array(times, np.int64), np.array(offsets, np.int64))
        plain = Stretch(b"".join(content for content, _, _ in found), pieces)
        self._reader.read_stretch(connection, direction, plain)

    def _content(self, tls: TlsConnection, direction: Direction, kind: int, record: bytes) -> bytes:
        """Return the application data of a record, which is the next of its side. Raises TlsError."""
        side = tls.of(direction)
        if tls.is_1_3 and kind != _DATA:
            return b""
        if tls.suite is None or not (tls.is_1_3 or side.is_encrypted):
            if kind == _HANDSHAKE and tls.suite is None:
                self._read_hello(tls, record)
            side.is_encrypted = kind == _CHANGE_CIPHER_SPEC
            return b""
        opened = self._opened(tls, side, record, ((0, side.number), (1, 0)))
        if opened is None:
            raise TlsError(f"a record cannot be opened with the secrets of {self._key_log.path or tls.capture}")
        kind, content = opened
        return content if kind == _DATA else b""

    def _read_hello(self, tls: TlsConnection, record: bytes) -> None:
        """Read the first message of a record: what matters of a ClientHello or ServerHello. Raises TlsError."""
        # Padded, so that a hello that is cut has fields as well.
        body = record[_HELLO_BODY:] + bytes(_FIELDS_BYTES_MAX)
        kind, random = record[_HEADER.size : _HEADER.size + 1], body[2 : 2 + _RANDOM_BYTES]
        if kind == _CLIENT_HELLO and not tls.random:
            tls.random = random
            if not self._secrets(tls.capture, random):
                raise TlsError(f"{self._key_log.path} has no secrets of this connection")
        if kind != _SERVER_HELLO or random == _RETRY:
            return
        at = 2 + _RANDOM_BYTES
        at += 1 + body[at]
        number = int.from_bytes(body[at : at + 2], "big")
        tls.suite = _SUITES.get(number)
        if tls.suite is None:
            raise TlsError(f"cipher suite 0x{number:04x} is not supported, only AES-GCM and ChaCha20-Poly1305")
        tls.is_1_3 = _version(body[at + 5 : at + 5 + int.from_bytes(body[at + 3 : at + 5], "big")]) == _TLS_1_3
        if tls.is_1_3:
            for side, name in ((tls.client, "CLIENT"), (tls.server, "SERVER")):
                labels = f"{name}_HANDSHAKE_TRAFFIC_SECRET", f"{name}_TRAFFIC_SECRET_0"
                side.keys = [_key_1_3(tls.suite, self._secret(tls, label)) for label in labels]
        else:
            self._derive_1_2(tls, tls.suite, random)

    def _derive_1_2(self, tls: TlsConnection, suite: _Suite, server_random: bytes) -> None:
        seed = b"key expansion" + server_random + tls.random
        master, block, a = self._secret(tls, "CLIENT_RANDOM"), b"", seed
        iv_bytes = 12 if suite is _CHACHA else 4
        while len(block) < 2 * (suite.key_bytes + iv_bytes):
            a = hmac.digest(master, a, suite.hash_name)
            block += hmac.digest(master, a + seed, suite.hash_name)
        ivs = block[2 * suite.key_bytes :]
        for index, side in enumerate((tls.client, tls.server)):
            key = block[index * suite.key_bytes : (index + 1) * suite.key_bytes]
            iv = ivs[index * iv_bytes : (index + 1) * iv_bytes]
            side.keys = [_Key(suite.cipher(key), iv, 12 - iv_bytes, b"")]

    def _secret(self, tls: TlsConnection, label: str) -> bytes:
        secret = self._secrets(tls.capture, tls.random, label).get(label)
        if secret is None:
            raise TlsError(f"{self._key_log.path or tls.capture} has no {label} of this connection")
        return secret

    def _secrets(self, capture: str, random: bytes, label: str = "") -> Mapping[str, bytes]:
        """Return a connection's secrets, with that of a label if there is one, in the key log and in the capture."""
        found, more = self._captures.setdefault(capture, (KeyLog(capture), capture_secrets(capture)))
        while True:
            known = found.secrets.get(random, {}) | self._key_log.secrets.get(random, {})
            following = None if known and (not label or label in known) else next(more, None)
            if following is None:
                return known
            found.add(following)

    def _resume(self, connection: Connection, direction: Direction, data: bytes, at: int) -> int:
        """Find a record behind missing bytes; return its start, or where the search has to continue."""
        tls, side = _of(connection, direction)
        if tls.suite is None and direction.is_response:
            raise TlsError("bytes of the handshake are not in the capture")
        if tls.suite is None:
            return at
        for match in _RECORD_START.finditer(data, at):
            start = match.start()
            length = int.from_bytes(data[start + 3 : start + 5], "big") if start + 5 <= len(data) else 0
            end = start + _HEADER.size + length
            if end > len(data):
                if length <= _RECORD_BYTES_MAX:
                    return self._skip(side, at, start)
                continue
            least = _HEADER.size + side.keys[0].explicit + _TAG_BYTES + tls.is_1_3
            missing = side.missing + start - at
            most = missing // least + 1
            numbers = chain(
                ((0, side.number + each) for each in range(most + 1)), ((1, each) for each in range(most + 1))
            )
            key, before = side.keys[0], side.number
            if self._opened(tls, side, data[start:end], numbers) is None:
                continue
            lost = side.number - 1 - before if side.keys[0] is key else 0
            # `_advance` opens it again.
            side.number -= 1
            self._skip(side, at, start)
            side.missing = 0
            side.is_encrypted = True
            self._reader.gap(connection, direction, max(missing - lost * least, 1))
            return start
        return self._skip(side, at, max(at, len(data) - 4))

    @staticmethod
    def _skip(side: TlsSide, at: int, to: int) -> int:
        side.missing += to - at
        side.passed += to - at
        return to

    def _opened(
        self,
        tls: TlsConnection,
        side: TlsSide,
        record: bytes,
        numbers: Iterator[tuple[int, int]] | tuple[tuple[int, int], ...],
    ) -> tuple[int, bytes] | None:
        """Return the type and content of a record, tried as these numbers of the current key or the next; or None."""
        assert tls.suite is not None
        for index, number in numbers:
            if index == len(side.keys):
                if not tls.is_1_3:
                    return None
                side.keys.append(_key_1_3(tls.suite, _expanded(tls.suite, side.keys[-1].secret, "traffic upd", 0)))
            if side.trials <= 0:
                raise TlsError("no record was found after a gap")
            side.trials -= side.missing > 0
            key = side.keys[index]
            begin = _HEADER.size + key.explicit
            head, body = record[: _HEADER.size], record[begin:]
            if key.explicit:
                nonce = key.iv + record[_HEADER.size : begin]
            else:
                nonce = (int.from_bytes(key.iv, "big") ^ number).to_bytes(12, "big")
            if not tls.is_1_3:
                head = number.to_bytes(8, "big") + head[:3] + (len(body) - _TAG_BYTES).to_bytes(2, "big", signed=True)
            try:
                content = key.cipher.decrypt(nonce, body, head)
            except (InvalidTag, ValueError):
                continue
            del side.keys[:index]
            side.number = number + 1
            if not tls.is_1_3:
                return record[0], content
            content = content.rstrip(b"\0")
            return (content[-1], content[:-1]) if content else (_HANDSHAKE, b"")
        return None


def side_of(connection: Connection, direction: Direction) -> TlsSide:
    """Return the state of one side of a connection that is decrypted."""
    return _of(connection, direction)[1]


def _of(connection: Connection, direction: Direction) -> tuple[TlsConnection, TlsSide]:
    tls = connection.tls
    assert isinstance(tls, TlsConnection)
    return tls, tls.of(direction)


def _version(extensions: bytes) -> bytes:
    """Return the version in a ServerHello's extensions, which TLS 1.3 has."""
    at = 0
    while at + 4 <= len(extensions):
        kind, size = (int.from_bytes(extensions[at + 2 * each : at + 2 * each + 2], "big") for each in (0, 1))
        if kind == _SUPPORTED_VERSIONS:
            return extensions[at + 4 : at + 4 + size]
        at += 4 + size
    return b""


def _expanded(suite: _Suite, secret: bytes, label: str, size: int) -> bytes:
    """Return HKDF-Expand-Label of a secret without a context; size 0 is that of the hash."""
    size = size or len(secret)
    name = b"tls13 " + label.encode()
    info = size.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0\1"
    return hmac.digest(secret, info, suite.hash_name)[:size]


def _key_1_3(suite: _Suite, secret: bytes) -> _Key:
    key = suite.cipher(_expanded(suite, secret, "key", suite.key_bytes))
    return _Key(key, _expanded(suite, secret, "iv", 12), 0, secret)
