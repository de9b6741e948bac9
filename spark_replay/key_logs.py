"""Secrets of TLS connections, from the file that clients and servers write for SSLKEYLOGFILE.

Each line is a label, the random of a connection's ClientHello, and a secret, in hex (RFC 9850). A pcapng file may have
such a file in a Decryption Secrets Block (`editcap --inject-secrets`), and is taken for a key log too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from struct import Struct

from mockraft.files.given_files import open_file
from mockraft.spark_replay.storage import Location, LocationError

_LINE = re.compile(rb"^([A-Z][A-Z0-9_]*) ([0-9a-fA-F]{64}) ((?:[0-9a-fA-F]{2})+)\s*$", re.MULTILINE)
_SECRETS_BLOCK, _TLS_KEY_LOG = 10, 0x544C534B
KEY_LOG_HELP = "Secrets of TLS connections: what SSLKEYLOGFILE names, or a pcapng file with them."
# Of a capture only the start is read: the block precedes the packets.
_BYTES_MAX = 256 << 20
_SECTION_MAGIC, _BIG_ENDIAN = b"\x0a\x0d\x0d\x0a", b"\x1a\x2b\x3c\x4d"


class KeyLogError(ValueError):
    """Raised for a file without secrets, and for one that cannot be read."""


@dataclass(frozen=True, slots=True)
class KeyLog:
    """The secrets of a key log by label and ClientHello's random; they are not part of its text."""

    path: str
    secrets: dict[tuple[str, bytes], bytes] = field(repr=False, hash=False)


def read_key_log(path: str) -> KeyLog:
    """Return the secrets of a key log, or of a pcapng file. Raises KeyLogError."""
    try:
        data = _start_of(Location.parse(path))
    except LocationError as error:
        raise KeyLogError(str(error)) from None
    except OSError as error:
        raise KeyLogError(f"{path}: {error.strerror or error}") from None
    text = b"\n".join(_blocks(data)) if data.startswith(_SECTION_MAGIC) else data
    found = {
        (label.decode(), bytes.fromhex(random.decode())): bytes.fromhex(secret.decode())
        for label, random, secret in _LINE.findall(text.replace(b"\r", b""))
    }
    if not found:
        raise KeyLogError(f"{path} has no line of a key log (SSLKEYLOGFILE): a label, a random and a secret")
    return KeyLog(path, found)


def _start_of(location: Location) -> bytes:
    if not location.is_remote:
        with open_file(location.path) as file:
            return file.read(_BYTES_MAX)
    with location.file_system().open_input_file(location.arrow_path) as stored:
        content: bytes = stored.read(_BYTES_MAX)
    return content


def _blocks(data: bytes) -> list[bytes]:
    """Return the key logs in the Decryption Secrets Blocks of a pcapng file."""
    found, at, words = [], 0, Struct("<2I")
    while at + 12 <= len(data):
        if data[at : at + 4] == _SECTION_MAGIC:
            words = Struct(">2I" if data[at + 8 : at + 12] == _BIG_ENDIAN else "<2I")
        kind, size = words.unpack_from(data, at)
        if size < 12:
            break
        if kind == _SECRETS_BLOCK and size >= 20:
            secrets_kind, length = words.unpack_from(data, at + 8)
            if secrets_kind == _TLS_KEY_LOG:
                found.append(data[at + 16 : at + 16 + min(length, size - 20)])
        at += size
    return found
