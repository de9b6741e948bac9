"""Client properties of Kafka's tools, such as a `--command-config` file, as settings of mockraft's own clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mockraft.files.given_files import read_file, read_url
from mockraft.kafka_configs import java_properties
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.sasl import OAUTHBEARER, SaslLogin, unsecured_token

_JAAS: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')

_STORE_TYPES: Final = ("PEM", "PKCS12", "JKS")
"""Java reads PKCS12 as JKS, too, which is the default; a file in JKS itself is refused as it is read."""


def security_of(properties: Mapping[str, str]) -> ClientSecurity:
    """Parse Kafka's client properties, as in a `--command-config` file of its tools; stores are in PEM or PKCS12.

    Raises ValueError for unsupported settings.
    """
    for store in ("truststore", "keystore"):
        kind = properties.get(f"ssl.{store}.type", "JKS")
        if f"ssl.{store}.location" in properties and kind not in _STORE_TYPES:
            raise ValueError(f"ssl.{store}.type is {kind}: mockraft reads PEM and PKCS12")
    truststore, keystore = (properties.get(f"ssl.{store}.location") for store in ("truststore", "keystore"))
    protocol = properties.get("security.protocol", "PLAINTEXT")
    return ClientSecurity(
        protocol,
        Path(truststore) if truststore else None,
        Path(keystore) if keystore else None,
        login=_login(properties) if protocol.startswith("SASL") else None,
        checks_host=properties.get("ssl.endpoint.identification.algorithm", "https") != "",
        key_password=properties.get("ssl.keystore.password", properties.get("ssl.key.password")),
        truststore_password=properties.get("ssl.truststore.password"),
    )


def read_properties(path: Path) -> ClientSecurity:
    """Parse a properties file with `security_of`. Raises OSError if it is missing, ValueError as `security_of`."""
    try:
        found = java_properties.read(read_file(path))
        return security_of({key: value.strip() for key, value in found.items()})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _login(properties: Mapping[str, str]) -> SaslLogin:
    jaas = {key: re.sub(r"\\(.)", r"\1", value) for key, value in _JAAS.findall(properties.get("sasl.jaas.config", ""))}
    if properties.get("sasl.mechanism") == OAUTHBEARER:
        return _bearer(properties, jaas)
    if "username" not in jaas or "password" not in jaas:
        raise ValueError('sasl.jaas.config must have username="…" and password="…"')
    is_token = jaas.get("tokenauth", "").lower() == "true"
    return SaslLogin(properties.get("sasl.mechanism", "GSSAPI"), jaas["username"], jaas["password"], is_token)


def _bearer(properties: Mapping[str, str], jaas: Mapping[str, str]) -> SaslLogin:
    """Return the login with the token in a file, or with an unsecured one, as Kafka's OAuthBearerLoginModule."""
    if url := properties.get("sasl.oauthbearer.token.endpoint.url"):
        try:
            return SaslLogin(OAUTHBEARER, "", read_url(url).strip())
        except OSError as error:
            raise ValueError(f"sasl.oauthbearer.token.endpoint.url={url}: {error.strerror}") from None
    if user := jaas.get("unsecuredLoginStringClaim_sub"):
        return SaslLogin(OAUTHBEARER, user, unsecured_token(user))
    raise ValueError(
        'it must have sasl.oauthbearer.token.endpoint.url, or unsecuredLoginStringClaim_sub="…" in sasl.jaas.config'
    )
