"""Allowed values of the security options of a controller, and their dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mockraft.releases import Behaviour, metadata_version

if TYPE_CHECKING:
    from mockraft.server.config import ControllerConfig
    from mockraft.wire.scram import ScramUser

SECURITY_PROTOCOLS: Final[Mapping[str, int]] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's numbers by name (SecurityProtocol)."""

SSL_CLIENT_AUTH: Final = ("none", "requested", "required")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MAPPING: Final = "DEFAULT"


def uses_tls(security_protocol: str) -> bool:
    """True if connections are encrypted."""
    return security_protocol.endswith("SSL")


def uses_sasl(security_protocol: str) -> bool:
    """True if connections authenticate with SASL."""
    return security_protocol.startswith("SASL")


def check(config: ControllerConfig) -> None:
    """Raise ValueError that names the wrong option and its allowed values."""
    protocol = config.security_protocol
    if config.ssl_principal_mapping_rules != DEFAULT_MAPPING:
        from mockraft.server.distinguished_name import PrincipalMapper

        PrincipalMapper(config.ssl_principal_mapping_rules)
    if uses_sasl(protocol) and not config.sasl_enabled_mechanisms:
        raise ValueError(f"security_protocol={protocol} needs sasl_enabled_mechanisms: {', '.join(MECHANISMS)}")
    if uses_tls(protocol):
        _check_files(config)
    if config.scram_users and not metadata_version(config.metadata_version).has(Behaviour.SCRAM):
        raise ValueError("scram_users need metadata_version 11 (3.5-IV2) or later")
    for user in config.scram_users:
        _check_scram_user(user)
    if "" in config.plain_users or "" in config.plain_users.values():
        raise ValueError("plain_users: neither a name nor a password may be empty")


def _check_files(config: ControllerConfig) -> None:
    protocol = config.security_protocol
    files: dict[str, Path | None] = {
        "ssl_certificate_file": config.ssl_certificate_file,
        "ssl_key_file": config.ssl_key_file,
    }
    if config.ssl_client_auth != "none":
        files["ssl_truststore_file"] = config.ssl_truststore_file
    for option, path in files.items():
        if path is None:
            raise ValueError(
                f"security_protocol={protocol} with ssl_client_auth={config.ssl_client_auth} needs {option}"
            )
    for path in (*files.values(), config.ssl_truststore_file):
        if path is not None and not path.is_file():
            raise ValueError(f"{path}: there is no such file; certificates and keys are PEM files")


def _check_scram_user(user: ScramUser) -> None:
    from mockraft.wire.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN

    if user.mechanism not in HASHES:
        raise ValueError(f"scram_users: mechanism={user.mechanism!r}: it must be {' or '.join(HASHES)}")
    if not user.name or not user.password:
        raise ValueError("scram_users: neither a name nor a password may be empty")
    if not ITERATIONS_MIN <= user.iterations <= ITERATIONS_MAX:
        raise ValueError(f"scram_users: iterations of {user.name} must be {ITERATIONS_MIN} to {ITERATIONS_MAX}")
