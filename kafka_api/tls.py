"""TLS for the listener without its sockets: bytes in, bytes out, and the client's certificate.

OpenSSL works on memory here (RFC 5246, RFC 8446), so a handshake can be refused, timed and journaled like a request;
asyncio's own TLS cannot do that (docs/explanation/decisions/tls-in-memory.md).
TLS 1.2 and 1.3, as Kafka's defaults are.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from pathlib import Path
from typing import Protocol

from mockraft.wire import keystores

READ_BYTES = 65_536
HANDSHAKE = 0x16
"""First byte of a TLS connection (ContentType.handshake)."""

_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsError(Exception):
    """Raised if the client violates TLS; the text describes how, and `kind` is the journal's category."""

    kind = "tls"


class NoTlsError(TlsError):
    """Raised if the client's first byte begins no TLS handshake."""

    kind = "no_tls"


class TlsFiles(Protocol):
    """Certificates of a listener, and whether clients need one (ssl.client.auth)."""

    @property
    def ssl_certificate_file(self) -> Path | None:
        """Its certificate chain."""

    @property
    def ssl_key_file(self) -> Path | None:
        """Its key."""

    @property
    def ssl_key_password(self) -> str | None:
        """Password of the key, or of the keystore with the chain and the key."""

    @property
    def ssl_truststore_file(self) -> Path | None:
        """Authorities of clients' certificates."""

    @property
    def ssl_truststore_password(self) -> str | None:
        """Password of the truststore."""

    @property
    def ssl_client_auth(self) -> str:
        """none, requested or required."""


def server_context(config: TlsFiles) -> ssl.SSLContext:
    """Return the listener's SSL context. OSError, ValueError for files that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if key_log := os.environ.get("SSLKEYLOGFILE"):
        context.keylog_filename = key_log
    # As in Kafka: a client could keep the process busy with renegotiations.
    context.options |= ssl.OP_NO_RENEGOTIATION
    assert config.ssl_certificate_file is not None
    keystores.load_own(context, config.ssl_certificate_file, config.ssl_key_file, config.ssl_key_password)
    if config.ssl_truststore_file is not None:
        cafile, cadata = keystores.authorities(config.ssl_truststore_file, config.ssl_truststore_password)
        try:
            context.load_verify_locations(cafile=cafile, cadata=cadata)
        except ssl.SSLError as error:
            raise ValueError(f"{config.ssl_truststore_file} holds no certificates in PEM: {error}") from error
    context.verify_mode = _VERIFY[config.ssl_client_auth]
    return context


class TlsSession:
    """Server side of one connection. Fetch bytes to send with `outgoing` after every call."""

    __slots__ = ("_in", "_is_new", "_out", "_tls", "ended", "established")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._is_new = True
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self.established = False
        self.ended = False

    def receive(self, data: bytes) -> bytes:
        """Decrypt received bytes. After TlsError only `outgoing` may be called."""
        if self._is_new and data:
            self._is_new = False
            if data[0] != HANDSHAKE:
                # OpenSSL would send an alert, whose bytes a client without TLS takes for a frame of 352 MiB.
                raise NoTlsError("a client without TLS on a listener with TLS")
        self._in.write(data)
        try:
            if not self.established:
                self._tls.do_handshake()
                self.established = True
            return self._read()
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLError as error:
            raise TlsError(f"TLS failed: {_reason(error)}") from error

    def send(self, data: bytes) -> None:
        """Encrypt these bytes."""
        self._tls.write(data)

    def end(self) -> None:
        """Send close_notify; no effect before the handshake is complete."""
        if self.established:
            # Do not wait for the client's close_notify.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()

    def outgoing(self) -> bytes:
        """Return the bytes to send to the client."""
        return self._out.read()

    @property
    def peer_certificate(self) -> bytes | None:
        """Verified certificate of the client in DER; None if it sent none."""
        return self._tls.getpeercert(binary_form=True)

    def _read(self) -> bytes:
        parts: list[bytes] = []
        while True:
            try:
                part = self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                break
            if not part:
                self.ended = True
                break
            parts.append(part)
        return b"".join(parts)


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
