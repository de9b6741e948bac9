"""The security of a listener: its options, and how other nodes connect to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mockraft.files.keystore_formats import is_pkcs12

if TYPE_CHECKING:
    from mockraft.kafka_api.authentication.bearer_tokens import TokenRules
    from mockraft.kafka_api.authentication.distinguished_name import PrincipalMapper
    from mockraft.wire.client_security import ClientSecurity
    from mockraft.wire.sasl import SaslLogin
    from mockraft.wire.scram import ScramUser

SECURITY_PROTOCOLS: Final[Mapping[str, int]] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's numbers by name (SecurityProtocol)."""

SSL_CLIENT_AUTH: Final = ("none", "requested", "required")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
DEFAULT_MAPPING: Final = "DEFAULT"


def uses_tls(security_protocol: str) -> bool:
    """True if connections are encrypted."""
    return security_protocol.endswith("SSL")


def uses_sasl(security_protocol: str) -> bool:
    """True if connections authenticate with SASL."""
    return security_protocol.startswith("SASL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSecurity:
    """Security options of a listener, named as those of `ControllerConfig`, which has the same.

    `client_security` is used by other nodes to connect to it. Raises ValueError that names the wrong option and its
    allowed values.
    """

    security_protocol: str = "PLAINTEXT"
    ssl_certificate_file: Path | None = None
    ssl_key_file: Path | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_truststore_file: Path | None = None
    ssl_truststore_password: str | None = field(default=None, repr=False)
    ssl_client_auth: str = "none"
    ssl_principal_mapping_rules: str = DEFAULT_MAPPING
    sasl_enabled_mechanisms: tuple[str, ...] = ()
    sasl_oauthbearer_jwks_endpoint_url: str | None = None
    sasl_oauthbearer_expected_audience: tuple[str, ...] = ()
    sasl_oauthbearer_expected_issuer: str | None = None
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    connections_max_reauth_ms: int = 0
    mechanisms_max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    client_security: ClientSecurity | None = None

    def __post_init__(self) -> None:
        protocol = self.security_protocol
        for name, value, allowed in (
            ("security_protocol", protocol, SECURITY_PROTOCOLS),
            ("ssl_client_auth", self.ssl_client_auth, SSL_CLIENT_AUTH),
            *(("sasl_enabled_mechanisms", each, MECHANISMS) for each in self.sasl_enabled_mechanisms),
        ):
            if value not in allowed:
                raise ValueError(f"{name}={value!r}: it must be {' or '.join(allowed)}")
        if self.ssl_principal_mapping_rules != DEFAULT_MAPPING:
            self.principal_mapper()
        if uses_sasl(protocol) and not self.sasl_enabled_mechanisms:
            raise ValueError(f"security_protocol={protocol} needs sasl_enabled_mechanisms: {', '.join(MECHANISMS)}")
        if uses_tls(protocol):
            _check_files(self)
        if "OAUTHBEARER" in self.sasl_enabled_mechanisms:
            self.read_token_rules()
        if self.client_security is not None:
            self.check_client("client_security", self.client_security)
        if "" in self.plain_users or "" in self.plain_users.values():
            raise ValueError("plain_users: neither a name nor a password may be empty")

    # Imported by the listeners that need them, so that a PLAINTEXT listener starts faster.
    def principal_mapper(self) -> PrincipalMapper:
        """Return what names the users of certificates. Raises ValueError for an invalid rule."""
        from mockraft.kafka_api.authentication.distinguished_name import PrincipalMapper

        return PrincipalMapper(self.ssl_principal_mapping_rules)

    def read_token_rules(self) -> TokenRules:
        """Return the rules for tokens of OAUTHBEARER. Raises ValueError if the JWKS cannot be read."""
        from mockraft.kafka_api.authentication.bearer_tokens import token_rules

        url, issuer = self.sasl_oauthbearer_jwks_endpoint_url, self.sasl_oauthbearer_expected_issuer
        return token_rules(url, self.sasl_oauthbearer_expected_audience, issuer)

    def check_client(self, name: str, client: ClientSecurity | None) -> None:
        """Raise ValueError if no client with these settings, of the option `name`, can connect to the listener."""
        protocol = "PLAINTEXT" if client is None else client.protocol
        if protocol != self.security_protocol:
            has = f"and the listener has security_protocol={self.security_protocol}"
            raise ValueError(f"{name}: it is for {protocol}, {has}")
        if client is None:
            return
        if client.login is not None and client.login.mechanism not in self.sasl_enabled_mechanisms:
            has = f"and the listener has sasl_enabled_mechanisms={','.join(self.sasl_enabled_mechanisms)}"
            raise ValueError(f"{name}: it logs in with {client.login.mechanism}, {has}")
        if uses_tls(protocol) and self.ssl_client_auth == "required" and client.keystore_file is None:
            raise ValueError(f"{name}: it has no keystore_file, and the listener has ssl_client_auth=required")


def _check_files(security: ServerSecurity) -> None:
    protocol = security.security_protocol
    files: dict[str, Path | None] = {
        "ssl_certificate_file": security.ssl_certificate_file,
        "ssl_key_file": security.ssl_key_file,
    }
    if security.ssl_client_auth != "none":
        files["ssl_truststore_file"] = security.ssl_truststore_file
    certificate = security.ssl_certificate_file
    has_key = certificate is not None and _checked(certificate)
    for name, path in files.items():
        if path is None and not (has_key and name == "ssl_key_file"):
            about = f"security_protocol={protocol} with ssl_client_auth={security.ssl_client_auth}"
            raise ValueError(f"{about} needs {name}")
    for path in (*files.values(), security.ssl_truststore_file):
        if path is not None:
            _checked(path)


def _checked(path: Path) -> bool:
    """Return True if the file has PKCS12, and so a key with its certificates. ValueError if it cannot be read."""
    try:
        return is_pkcs12(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; certificates and keys are in PEM or PKCS12") from None


def own_client_security(
    security: ServerSecurity, scram_users: Iterable[ScramUser] = (), preferred: Iterable[str] = ()
) -> ClientSecurity | None:
    """Return how a node connects to nodes with its own options; None: PLAINTEXT, or SASL without a user.

    It shows its own certificate and trusts the authorities of its clients, or else that certificate. It logs in as the
    first of the configured users, or of those whose principals are `preferred`.
    """
    protocol = security.security_protocol
    if security.client_security is not None or protocol == "PLAINTEXT":
        return security.client_security
    from mockraft.wire.client_security import ClientSecurity

    login = _own_login(security, scram_users, frozenset(preferred)) if uses_sasl(protocol) else None
    if uses_sasl(protocol) and login is None:
        return None
    if not uses_tls(protocol):
        return ClientSecurity(protocol, login=login)
    trusted = security.ssl_truststore_file or security.ssl_certificate_file
    own = security.ssl_certificate_file
    password = security.ssl_truststore_password if security.ssl_truststore_file else security.ssl_key_password
    return ClientSecurity(
        *(protocol, trusted, own, security.ssl_key_file, login),
        key_password=security.ssl_key_password,
        truststore_password=password,
    )


def _own_login(
    security: ServerSecurity, scram_users: Iterable[ScramUser], preferred: frozenset[str]
) -> SaslLogin | None:
    from mockraft.wire.sasl import OAUTHBEARER, PLAIN, SaslLogin, unsecured_token

    enabled = security.sasl_enabled_mechanisms
    logins = [SaslLogin(PLAIN, *user) for user in security.plain_users.items() if PLAIN in enabled]
    logins += [SaslLogin(each.mechanism, each.name, each.password) for each in scram_users if each.mechanism in enabled]
    if OAUTHBEARER in enabled and security.sasl_oauthbearer_jwks_endpoint_url is None:
        user = min(preferred, default="User:mockraft").removeprefix("User:")
        logins.append(SaslLogin(OAUTHBEARER, user, unsecured_token(user)))
    return next((each for each in logins if f"User:{each.user}" in preferred), logins[0] if logins else None)
