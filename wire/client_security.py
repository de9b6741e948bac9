"""Client-side security settings of a connection: TLS from PEM files, and SASL credentials."""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mockraft.files.given_files import read_file
from mockraft.wire.sasl import SaslLogin

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """The client's settings for a listener's `security.protocol`.

    `truststore_file` holds the trusted certificate authorities (None: the system's), `keystore_file` the client's
    certificate with its key, both in one PEM file unless `key_file` holds the key. Raises ValueError for an
    inconsistent combination.
    """

    protocol: str = "PLAINTEXT"
    truststore_file: Path | None = None
    keystore_file: Path | None = None
    key_file: Path | None = None
    login: SaslLogin | None = None
    checks_host: bool = True

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
        return _context(self.truststore_file, self.keystore_file, self.key_file, self.checks_host)


@functools.lru_cache(maxsize=16)
def _context(
    truststore_file: Path | None, keystore_file: Path | None, key_file: Path | None, checks_host: bool
) -> ssl.SSLContext:
    for path in filter(None, (truststore_file, keystore_file, key_file)):
        read_file(path)  # OpenSSL would wait for a pipe, and read a device to its end
    context = ssl.create_default_context(cafile=None if truststore_file is None else str(truststore_file))
    context.check_hostname = checks_host
    # As Java: certificates made without every field that RFC 5280 asks for are common where Kafka is.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if keystore_file is not None:
        context.load_cert_chain(keystore_file, key_file)
    return context
