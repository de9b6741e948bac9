"""Values in place of secrets: as long as the secret on the wire, `[hidden]` as text and in JSON."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "[hidden]"
"""The text in place of a secret (Kafka's Password.HIDDEN)."""


class MaskedBytes(bytes):
    """Asterisks in place of secret bytes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


class MaskedText(str):
    """Asterisks in place of a secret text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


def mask(value: object) -> object:
    """Return the mask of a text or of bytes; null, an empty value and a value of another type as they are."""
    if isinstance(value, str) and value:
        return MaskedText("*" * len(value.encode()))
    return asterisks(value) if isinstance(value, bytes) and value else value


def asterisks(data: bytes) -> MaskedBytes:
    """Return as many asterisks as there are bytes."""
    return MaskedBytes(b"*" * len(data))
