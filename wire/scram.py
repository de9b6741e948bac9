"""SCRAM's arithmetic (RFC 5802 section 3, Kafka's ScramFormatter), for client and server.

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

NUMBERS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(HASHES, 1)}
"""Kafka's number by mechanism (ScramMechanism)."""

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user's name and password; servers keep only the credential derived from it."""

    name: str
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"
    iterations: int = ITERATIONS_MIN


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A SCRAM credential as stored by the server (RFC 5802)."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(hash_name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Derive the salted password, the costly step; Kafka uses the password's UTF-8 as it is, without SASLprep."""
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


def client_key(hash_name: str, salted: bytes) -> bytes:
    """Derive the key that a client proves to have."""
    return hmac.digest(salted, b"Client Key", hash_name)


def stored_key(hash_name: str, key: bytes) -> bytes:
    """Derive the form of a client key that a server stores."""
    return hashlib.new(hash_name, key).digest()


def server_key(hash_name: str, salted: bytes) -> bytes:
    """Derive the key that a server proves to have."""
    return hmac.digest(salted, b"Server Key", hash_name)


def signature(hash_name: str, key: bytes, auth_message: bytes) -> bytes:
    """Sign all exchanged messages with a client's or server's key."""
    return hmac.digest(key, auth_message, hash_name)


def xor(first: bytes, second: bytes) -> bytes:
    """XOR two byte strings of equal length."""
    return (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")).to_bytes(len(first), "big")


def sasl_name(name: str) -> str:
    """Escape a user name for SCRAM."""
    return name.replace("=", "=3D").replace(",", "=2C")


def name_of(written: str) -> str:
    """Unescape a user name. Raises ValueError for an equals sign that is not part of an escape."""
    if "=" in written.replace("=2C", "").replace("=3D", ""):
        raise ValueError(f"{written!r} is no name in SCRAM")
    return written.replace("=2C", ",").replace("=3D", "=")
