"""Formats of keystores: told apart without OpenSSL, which is imported only to read one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mockraft.files.given_files import read_file

_JAVAS: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}


def is_pkcs12(path: Path) -> bool:
    """Return True if the file has PKCS12, False for PEM. OSError; ValueError for Java's own formats."""
    head = read_file(path)[:4]
    if (kind := _JAVAS.get(head)) is not None:
        command = f"keytool -importkeystore -srckeystore {path} -destkeystore {path.stem}.p12 -deststoretype PKCS12"
        raise ValueError(f"{path} is a keystore in {kind}; convert it: {command}")
    return head[:1] == b"0" and len(head) > 1 and head[1] >= 0x80  # a sequence in DER with a long length
