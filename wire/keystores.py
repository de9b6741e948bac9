"""Certificates and keys for TLS from files: PEM, whose key may be encrypted, and PKCS12 as Java's keytool makes it.

OpenSSL reads PEM by itself; PKCS12 needs the package cryptography, an extra. JKS and JCEKS are formats of Java alone,
from which keytool converts.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from mockraft.files.given_files import read_file
from mockraft.files.keystore_formats import is_pkcs12
from mockraft.files.private_files import write_private


class Authorities(NamedTuple):
    """Trusted certificates as OpenSSL takes them: a file in PEM, or certificates in DER; None, None: the system's."""

    cafile: str | None = None
    cadata: bytes | None = None


def load_own(context: ssl.SSLContext, certificate: Path, key: Path | None, password: str | None) -> None:
    """Load a certificate chain and its key, which is in the same file if `key` is None. OSError, ValueError."""
    if key is not None:
        read_file(key)  # OpenSSL would wait for a pipe, and read a device to its end
    with tempfile.TemporaryDirectory(prefix="mockraft-key-") as folder:
        file = certificate
        if is_pkcs12(certificate):
            file, key = Path(folder) / "key.pem", None
            write_private(file, _pkcs12(certificate).own_in_pem(certificate, password))
        try:
            context.load_cert_chain(file, key, password=_password(key or certificate, password))
        except ssl.SSLError as error:
            what = f"{certificate} and {key}" if key else f"{certificate}"
            reason = "; is it another password?" if password else ""
            raise ValueError(f"{what} are no certificate with its key in PEM: {error}{reason}") from error


def authorities(path: Path | None, password: str | None) -> Authorities:
    """Return the certificates of a truststore, if there is one. OSError, ValueError."""
    if path is None:
        return Authorities()
    if not is_pkcs12(path):
        return Authorities(cafile=str(path))
    return Authorities(cadata=_pkcs12(path).certificates_in_der(path, password))


def _pkcs12(path: Path) -> ModuleType:
    try:
        from mockraft.wire import pkcs12
    except ImportError:
        raise ValueError(f"{path}: PKCS12 needs cryptography: pip install 'mockraft[keystores]'") from None
    return pkcs12


def _password(path: Path, password: str | None) -> Callable[[], str]:
    def get() -> str:
        if password is None:
            raise ValueError(f"{path} is encrypted, and no password of the key is given")
        return password

    return get
