"""Recognise the start of a request in a version that only older releases have (KIP-896, ZooKeeper's controller).

Many of these are version 0 of an API with a low number, all zeros, and so are the first bytes of other protocols: a
ZooKeeper session begins as Produce 0 does. So the body has to be readable too, as far as it was captured.
"""

from __future__ import annotations

from mockraft.wire.errors import WireError
from mockraft.wire.overlay import Overlay
from mockraft.wire.schema_files import Schema
from mockraft.wire.schema_reading import Reader

_LENGTH_BYTES = 4


def every_message() -> Overlay:
    """Return the messages of all releases. Reading their specs takes longer than a small capture, so few need them."""
    from mockraft.codegen.every_release import every_release

    return every_release()


def is_old_request(data: bytes | memoryview, api_key: int, api_version: int) -> bool:
    """Return True if a frame that starts with `data` (from its length on) is readable as a request of that version."""
    found = every_message()
    name = found.requests.get(api_key)
    if name is None or not found.schema(name).valid.covers(api_version):
        return False
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES])
    reader = _Beginning(bytes(data[:end]), end)
    try:
        reader.message(found.schema("RequestHeader"), found.request_header_version(api_key, api_version))
        reader.message(found.schema(name), api_version)
    except _NotCapturedError:
        return True
    except WireError:
        return False
    return reader.at == end


class _NotCapturedError(Exception):
    """Raised at the end of the captured bytes of a frame."""


class _Beginning(Reader):
    """A reader of a frame of which only the first bytes may have been captured."""

    def __init__(self, data: bytes, end: int) -> None:
        super().__init__(data, 0, _LENGTH_BYTES)
        self.end = end

    def message(self, spec: Schema, version: int) -> None:
        self.version = version
        self.struct(spec.root, spec.flexible.covers(version), "")

    def skip(self, size: int, path: str) -> int:
        start = super().skip(size, path)
        if self.at > len(self.data):
            raise _NotCapturedError
        return start

    def varint(self, path: str, bytes_max: int = 5) -> int:
        try:
            return super().varint(path, bytes_max)
        except IndexError:
            raise _NotCapturedError from None
