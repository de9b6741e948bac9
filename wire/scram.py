"""SCRAM's arithmetic (RFC 5802 section 3, Kafka's ScramFormatter), for both ends of a connection.

Keys and signatures are bytes as long as the hash; `hash_name` is hashlib's name of it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

HASHES: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Hash by mechanism, in the order of Kafka's numbers 1 and 2."""

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user with a password, of which a server keeps a credential only."""

    name: str
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"
    iterations: int = ITERATIONS_MIN


def salted_password(hash_name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The costly part; Kafka takes the password's UTF-8 as it is, without SASLprep."""
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


def client_key(hash_name: str, salted: bytes) -> bytes:
    """What a client proves that it has."""
    return hmac.digest(salted, b"Client Key", hash_name)


def stored_key(hash_name: str, key: bytes) -> bytes:
    """What a server keeps of a client key."""
    return hashlib.new(hash_name, key).digest()


def server_key(hash_name: str, salted: bytes) -> bytes:
    """What a server proves that it has."""
    return hmac.digest(salted, b"Server Key", hash_name)


def signature(hash_name: str, key: bytes, auth_message: bytes) -> bytes:
    """A client's or server's signature of all that was said."""
    return hmac.digest(key, auth_message, hash_name)


def xor(first: bytes, second: bytes) -> bytes:
    """Byte by byte; both are equally long."""
    return (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")).to_bytes(len(first), "big")


def sasl_name(name: str) -> str:
    """A user's name as SCRAM writes it."""
    return name.replace("=", "=3D").replace(",", "=2C")


def name_of(written: str) -> str:
    """The user's name again. ValueError on an equals sign that is no escape."""
    if "=" in written.replace("=2C", "").replace("=3D", ""):
        raise ValueError(f"{written!r} is no name in SCRAM")
    return written.replace("=2C", ",").replace("=3D", "=")
