"""Allowed values of the security options of a controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SECURITY_PROTOCOLS: Final[Mapping[str, int]] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's numbers by name (SecurityProtocol)."""

SSL_CLIENT_AUTH: Final = ("none", "requested", "required")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MAPPING: Final = "DEFAULT"


def uses_tls(security_protocol: str) -> bool:
    """True if connections are encrypted."""
    return security_protocol.endswith("SSL")


def uses_sasl(security_protocol: str) -> bool:
    """True if connections authenticate with SASL."""
    return security_protocol.startswith("SASL")
