"""Access and limits of the admin API."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """Address, token and limits of the admin API; sizes in bytes.

    A request's headers must be complete within `request_timeout_s`, and then its body within the same time.
    `token` is the bearer token that every request must have, except health, the page and the OpenAPI document. Raises
    ValueError if other machines could reach it without a token, unless `insecure`.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    insecure: bool = False
    body_bytes_max: int = 1_048_576
    state_bytes_max: int = 268_435_456
    request_timeout_s: float = 10.0
    connections_max: int = 512

    def __post_init__(self) -> None:
        if self.token is not None and (not self.token or not self.token.isascii() or not self.token.isprintable()):
            raise ValueError("the admin token must be printable ASCII, and not empty")
        if self.token is None and not self.insecure and not is_loopback(self.host):
            raise ValueError(f"{self.host} can be reached by other machines: give a token, or allow it explicitly")

    def url(self, port: int) -> str:
        """Return the URL of the API at this port, without a trailing slash; the loopback address for a wildcard."""
        host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a listener on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


PRIVATE_SUFFIXES = (".localhost", ".internal", ".cluster.local", ".test")
"""Without .local, under which anyone in the same network can be (mDNS)."""


def is_private_name(host: str) -> bool:
    """Return True if a Host header's name cannot be a public DNS name that points here (DNS rebinding).

    These are addresses, names without a dot (containers, hosts file) and names under suffixes that public DNS lacks.
    """
    name = host.lower()
    try:
        ipaddress.ip_address(name[1:-1] if name.startswith("[") and name.endswith("]") else name)
    except ValueError:
        # `ai.` is the top-level domain, where `ai` is looked for in the machine's own domains first.
        return "." not in name or name.removesuffix(".").endswith(PRIVATE_SUFFIXES)
    return True
