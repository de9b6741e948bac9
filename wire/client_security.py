"""Client-side security settings of a connection: TLS from files, and SASL credentials."""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mockraft.wire import keystores
from mockraft.wire.sasl import SaslLogin

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """The client's settings for a listener's `security.protocol`.

    `truststore_file` holds the trusted certificate authorities (None: the system's), `keystore_file` the client's
    certificate with its key, both in one file unless `key_file` holds the key. They are PEM or PKCS12, and have
    passwords if encrypted. Raises ValueError for an inconsistent combination.
    """

    protocol: str = "PLAINTEXT"
    truststore_file: Path | None = None
    keystore_file: Path | None = None
    key_file: Path | None = None
    login: SaslLogin | None = None
    checks_host: bool = True
    key_password: str | None = field(default=None, repr=False)
    truststore_password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"security.protocol {self.protocol!r}: it must be {' or '.join(PROTOCOLS)}")
        if self.protocol.startswith("SASL") != (self.login is not None):
            raise ValueError(f"security.protocol {self.protocol} {'takes no' if self.login else 'needs a'} login")

    @property
    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, or None without TLS. Raises OSError or ValueError for unusable files."""
        if not self.protocol.endswith("SSL"):
            return None
        return _context(self)


@functools.lru_cache(maxsize=16)
def _context(security: ClientSecurity) -> ssl.SSLContext:
    cafile, cadata = keystores.authorities(security.truststore_file, security.truststore_password)
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    context.check_hostname = security.checks_host
    # As Java: certificates made without every field that RFC 5280 asks for are common where Kafka is.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if security.keystore_file is not None:
        keystores.load_own(context, security.keystore_file, security.key_file, security.key_password)
    return context
