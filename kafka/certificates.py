"""A certificate authority for tests: made in a folder, good for a day, trusted by nobody else. Needs `openssl`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

_DAYS = "1"

# All that RFC 5280 asks for, as strict clients do too (Python's own from 3.13 on).
_AUTHORITY = """[req]
distinguished_name=name
prompt=no
x509_extensions=authority
[name]
CN=mockraft test authority
[authority]
basicConstraints=critical,CA:TRUE
keyUsage=critical,keyCertSign,cRLSign
subjectKeyIdentifier=hash
"""
_HOLDER = """subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1
basicConstraints=CA:FALSE
extendedKeyUsage=serverAuth,clientAuth
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""


class Certificate(NamedTuple):
    """PEM files of one holder: the certificate, its key, and both in one as Kafka's PEM keystores are."""

    certificate: Path
    key: Path
    keystore: Path


class CertificateAuthority:
    """A throw-away authority whose certificates are good for `localhost` and the loopback addresses.

    Its files go into `directory`, made when it is not there. RuntimeError when there is no `openssl`, or it refused.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.certificate = directory / "ca.pem"
        self._key = directory / "ca.key"
        _new_key(self._key)
        config = directory / "ca.cnf"
        config.write_text(_AUTHORITY)
        made = ("req", "-x509", "-new", "-config", config, "-key", self._key)
        _openssl(*made, "-days", _DAYS, "-out", self.certificate)

    def issue(self, subject: str, *, file_name: str | None = None) -> Certificate:
        """A new key and its certificate, in files called `file_name` (by default the last part of the subject).

        `subject` is the holder as `openssl` writes it, the widest first: ``/O=mockraft/CN=broker-1``.
        """
        name = file_name or subject.rpartition("=")[2]
        certificate, key, request = (self.directory / f"{name}{ending}" for ending in (".pem", ".key", ".csr"))
        _new_key(key)
        _openssl("req", "-new", "-utf8", "-key", key, "-subj", subject, "-out", request)
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(_HOLDER)
        signed = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", _DAYS)
        _openssl("x509", "-req", "-in", request, *signed, "-extfile", extensions, "-out", certificate)
        keystore = self.directory / f"{name}.keystore.pem"
        keystore.write_text(key.read_text() + certificate.read_text())
        keystore.chmod(0o600)
        return Certificate(certificate, key, keystore)


def _new_key(path: Path) -> None:
    """An elliptic key in PKCS #8, the one form of PEM that both Java and Python read."""
    path.touch(0o600)
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)


def _openssl(*arguments: str | Path) -> None:
    try:
        done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=30)
    except FileNotFoundError as error:
        raise RuntimeError("certificates are made with the command openssl, which is not on the PATH") from error
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
