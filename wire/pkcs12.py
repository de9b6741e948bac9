"""PKCS12 as PEM and DER, with the package cryptography, which only who has such files needs to install."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from mockraft.files.given_files import read_file


def own_in_pem(path: Path, password: str | None) -> bytes:
    """Return the key and its certificates; the key is encrypted if the file has a password. OSError, ValueError."""
    store = _read(path, password)
    if store.key is None or store.cert is None:
        raise ValueError(f"{path} has no key with its certificate")
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    chain = [each.certificate.public_bytes(Encoding.PEM) for each in (store.cert, *store.additional_certs)]
    return b"".join([store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption), *chain])


def certificates_in_der(path: Path, password: str | None) -> bytes:
    """Return all certificates, one after the other. OSError, ValueError."""
    store = _read(path, password)
    found = [each.certificate for each in (store.cert, *store.additional_certs) if each is not None]
    if not found:
        raise ValueError(f"{path} has no certificates")
    return b"".join(each.public_bytes(Encoding.DER) for each in found)


def _read(path: Path, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        if "\0" in (password or ""):  # at which cryptography would panic
            raise ValueError("the password has a null character")
        return pkcs12.load_pkcs12(read_file(path), password.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{path}: {error} (PKCS12, {'with a' if password else 'without a'} password)") from error
