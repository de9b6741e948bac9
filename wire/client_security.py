"""Client-side security settings of a connection: TLS from PEM files, and SASL credentials."""

from __future__ import annotations

import functools
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mockraft.wire import java_properties
from mockraft.wire.sasl import SaslLogin

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_JAAS: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


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
    context = ssl.create_default_context(cafile=None if truststore_file is None else str(truststore_file))
    context.check_hostname = checks_host
    # As Java: certificates made without every field that RFC 5280 asks for are common where Kafka is.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if keystore_file is not None:
        context.load_cert_chain(keystore_file, key_file)
    return context


def security_of(properties: Mapping[str, str]) -> ClientSecurity:
    """Parse Kafka's client properties, as in a `--command-config` file of its tools; stores must be PEM files.

    Raises ValueError for unsupported settings.
    """
    for store in ("truststore", "keystore"):
        kind = properties.get(f"ssl.{store}.type", "JKS")
        if f"ssl.{store}.location" in properties and kind != "PEM":
            raise ValueError(f"ssl.{store}.type is {kind}: mockraft reads PEM files only")
    truststore, keystore = (properties.get(f"ssl.{store}.location") for store in ("truststore", "keystore"))
    protocol = properties.get("security.protocol", "PLAINTEXT")
    return ClientSecurity(
        protocol,
        Path(truststore) if truststore else None,
        Path(keystore) if keystore else None,
        login=_login(properties) if protocol.startswith("SASL") else None,
        checks_host=properties.get("ssl.endpoint.identification.algorithm", "https") != "",
    )


def read_properties(path: Path) -> ClientSecurity:
    """Parse a properties file with `security_of`. Raises OSError if it is missing, ValueError as `security_of`."""
    try:
        found = java_properties.read(path.read_bytes())
        return security_of({key: value.strip() for key, value in found.items()})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _login(properties: Mapping[str, str]) -> SaslLogin:
    jaas = {key: re.sub(r"\\(.)", r"\1", value) for key, value in _JAAS.findall(properties.get("sasl.jaas.config", ""))}
    if "username" not in jaas or "password" not in jaas:
        raise ValueError('sasl.jaas.config must have username="…" and password="…"')
    is_token = jaas.get("tokenauth", "").lower() == "true"
    return SaslLogin(properties.get("sasl.mechanism", "GSSAPI"), jaas["username"], jaas["password"], is_token)
