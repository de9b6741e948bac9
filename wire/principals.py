"""Principals in the form in which brokers forward them: an int16 version, then DefaultPrincipalData.

Source: DefaultKafkaPrincipalBuilder's serialize and deserialize (KIP-590).
"""

from __future__ import annotations

from struct import Struct

from mockraft.wire.errors import WireError
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData

_VERSION = Struct(">h")


def read_principal(data: bytes | None) -> DefaultPrincipalData:
    """Read a serialized principal. Raises WireError."""
    if data is None or len(data) < _VERSION.size:
        raise WireError("a principal without a version")
    version = int(_VERSION.unpack_from(data)[0])
    if not DefaultPrincipalData.min_version <= version <= DefaultPrincipalData.max_version:
        raise WireError(f"a principal of version {version}")
    return DefaultPrincipalData.read_from(data, version, _VERSION.size)[0]


def write_principal(principal: str) -> bytes:
    """Serialize a principal such as `User:name`."""
    kind, _, name = principal.partition(":")
    version = DefaultPrincipalData.max_version
    return _VERSION.pack(version) + DefaultPrincipalData(type=kind, name=name).write(version)
