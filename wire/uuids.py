"""Kafka's uuids: 16 bytes, and their text, which is base64url without padding. Kafka's class: `Uuid`."""

from __future__ import annotations

import base64


def text_of(uuid: bytes) -> str:
    """Return the text of a uuid's bytes."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def read_text(text: str) -> bytes:
    """Return the 16 bytes of a uuid's text, padded or not. Raises ValueError if it is malformed."""
    uuid = base64.b64decode(text.rstrip("=") + "==", altchars=b"-_", validate=True) if len(text) <= 24 else b""
    if len(uuid) != 16:
        raise ValueError(f"{text[:60]!r} is no uuid: expected 22 characters of base64url")
    return uuid
