"""Secrets of TLS connections, from the file that clients and servers write for SSLKEYLOGFILE.

Each line is a label, the random of a connection's ClientHello, and a secret, in hex (RFC 9850). A pcapng file has such
lines in Decryption Secrets Blocks (`editcap --inject-secrets`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from mockraft.files.given_files import TEXT_BYTES_MAX
from mockraft.spark_replay.formats.capture_files import CaptureFile
from mockraft.spark_replay.formats.file_events import CaptureError, FileEvents
from mockraft.spark_replay.formats.packet_sources import Split, open_packets
from mockraft.spark_replay.formats.pcapng_blocks import PcapngBlocks

_LINE = re.compile(rb"^([A-Z][A-Z0-9_]*) ([0-9a-fA-F]{64}) ((?:[0-9a-fA-F]{2}){1,255})\s*$", re.MULTILINE)
# Of a capture no more is searched for secrets, which are in front of the packets or soon after a handshake.
_BYTES_MAX, _CHUNK_BYTES = 256 << 20, 1 << 20
_Secret = tuple[bytes, str, bytes]


class KeyLogError(ValueError):
    """Raised for a file without secrets, and for one that cannot be read."""


@dataclass(frozen=True, slots=True)
class KeyLog:
    """The secrets of a key log by ClientHello's random and label; they are not part of its text."""

    path: str = ""
    secrets: dict[bytes, dict[str, bytes]] = field(default_factory=dict, repr=False, hash=False)

    def add(self, secret: _Secret) -> None:
        """Add a secret."""
        random, label, value = secret
        self.secrets.setdefault(random, {})[label] = value


def read_key_log(path: str | None) -> KeyLog:
    """Return the secrets of a key log, none without one. Raises KeyLogError."""
    if path is None:
        return KeyLog()
    try:
        with CaptureFile(path) as file:
            if (size := file.size or 0) > TEXT_BYTES_MAX:
                raise KeyLogError(f"{path}: has more than {TEXT_BYTES_MAX:,} bytes")
            data = file.read_at(0, size)
    except CaptureError as error:
        raise KeyLogError(f"{path}: {error.problem}") from None
    found = KeyLog(path)
    for each in _secrets(data):
        found.add(each)
    if not found.secrets:
        raise KeyLogError(f"{path} has no line of a key log (SSLKEYLOGFILE): a label, a random and a secret")
    return found


def capture_secrets(path: str) -> Iterator[_Secret]:
    """Yield the secrets in a capture file, which is read as far as they are needed; none if it cannot be read."""
    with suppress(CaptureError), CaptureFile(path) as file:
        blocks = open_packets(file, Split(path), FileEvents(path, None, "skip"), _CHUNK_BYTES)
        if isinstance(blocks, PcapngBlocks):
            for _ in blocks:
                yield from _secrets(b"\n".join(blocks.key_logs))
                blocks.key_logs.clear()
                if file.position > _BYTES_MAX:
                    return


def _secrets(text: bytes) -> Iterator[_Secret]:
    for label, random, secret in _LINE.findall(text.replace(b"\r", b"")):
        yield bytes.fromhex(random.decode()), label.decode(), bytes.fromhex(secret.decode())
