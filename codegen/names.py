"""Conversion of Kafka's names to Python names."""

from __future__ import annotations

import keyword
import re

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(name: str) -> str:
    """Convert `CurrentMetadataOffset` to `current_metadata_offset`; a Python keyword gets a trailing underscore."""
    text = _BOUNDARY.sub("_", name).lower()
    return text + "_" if keyword.iskeyword(text) else text
