"""Security settings of a test's cluster for brokers and controller, in each program's own format.

The same choice as properties of a real broker, of Kafka's controller and of its tools, and as options of
``mockraft serve``. Only the controller listener is secured; clients reach the brokers in the clear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mockraft.files.private_files import write_private
from mockraft.kafka.certificates import Certificate, CertificateAuthority
from mockraft.kafka_configs import java_properties
from mockraft.kafka_configs.client_properties import read_properties
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.scram import ScramUser

SecurityProtocol = Literal["SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_LISTENER = "listener.name.controller."
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


class ListenerSecurity:
    """One way to secure the controller listener; certificates and password files go into `directory`, made if missing.

    ``protocol`` and ``client_auth`` are the listener's ``security.protocol`` and ``ssl.client.auth`` (brokers show
    certificates ``CN=broker,O=mockraft``). With SASL all brokers log in by ``mechanism`` as ``user``;
    by OAUTHBEARER with unsecured tokens.
    """

    def __init__(
        self,
        directory: Path,
        protocol: SecurityProtocol,
        *,
        mechanism: Mechanism = "SCRAM-SHA-256",
        user: str = "broker",
        password: str = "broker-secret",
        client_auth: Literal["none", "requested", "required"] = "none",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.protocol = protocol
        self.mechanism = mechanism
        self.user = user
        self.password = password
        self.client_auth = client_auth
        self.uses_tls = protocol.endswith("SSL")
        self.uses_sasl = protocol.startswith("SASL")
        self.authority: CertificateAuthority | None = None
        if self.uses_tls:
            self.authority = CertificateAuthority(directory)
            self.controller_certificate = self.authority.issue("/O=mockraft/CN=controller")
            self.broker_certificate = self.authority.issue("/O=mockraft/CN=broker")

    @property
    def broker_properties(self) -> Mapping[str, str]:
        """Security properties of a broker's ``server.properties``."""
        properties = {"listener.security.protocol.map": f"CONTROLLER:{self.protocol},PLAINTEXT:PLAINTEXT"}
        if self.uses_tls:
            properties |= self._tls(_LISTENER, self.broker_certificate)
        if self.uses_sasl:
            properties["sasl.mechanism.controller.protocol"] = self.mechanism
            properties[f"{_LISTENER}{self.mechanism.lower()}.sasl.jaas.config"] = self._login()
        return properties

    @property
    def controller_properties(self) -> Mapping[str, str]:
        """Security properties of Kafka's own controller's ``server.properties``."""
        properties = {"listener.security.protocol.map": f"CONTROLLER:{self.protocol}"}
        if self.uses_tls:
            properties |= self._tls(_LISTENER, self.controller_certificate)
            properties[f"{_LISTENER}ssl.client.auth"] = self.client_auth
        if self.uses_sasl:
            properties["sasl.mechanism.controller.protocol"] = self.mechanism
            properties[f"{_LISTENER}sasl.enabled.mechanisms"] = self.mechanism
            known = f' user_{self.user}="{self.password}"' if self.mechanism == "PLAIN" else ""
            properties[f"{_LISTENER}{self.mechanism.lower()}.sasl.jaas.config"] = self._login(known)
        return properties

    @property
    def format_options(self) -> Sequence[str]:
        """Arguments of ``kafka-storage format`` for Kafka's own controller."""
        if not self.uses_sasl or not self.mechanism.startswith("SCRAM"):
            return ()
        return ("--add-scram", self._scram_user())

    @property
    def serve_options(self) -> Sequence[str]:
        """Options of ``mockraft serve``; writes the files they name."""
        options = {**self.controller_options}
        is_plain = options.pop("plain_users", None) is not None
        if self.uses_sasl:
            options["sasl_enabled_mechanisms"] = self.mechanism
        if self.uses_sasl and self.mechanism != "OAUTHBEARER":
            users = self.directory / "users"
            text = f"{self.user}={self.password}\n" if is_plain else f"{self._scram_user()}\n"
            write_private(users, text.encode())
            options.pop("scram_users", None)
            options["plain_users_file" if is_plain else "scram_users_file"] = users
        return [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]

    @property
    def controller_options(self) -> Mapping[str, Any]:
        """Options of ``Controller``, for one in the test's own process."""
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self.authority is not None:
            options |= {
                "ssl_certificate_file": self.controller_certificate.certificate,
                "ssl_key_file": self.controller_certificate.key,
                "ssl_truststore_file": self.authority.certificate,
                "ssl_client_auth": self.client_auth,
            }
        if self.uses_sasl:
            options["sasl_enabled_mechanisms"] = (self.mechanism,)
            if self.mechanism == "PLAIN":
                options["plain_users"] = {self.user: self.password}
            elif self.mechanism != "OAUTHBEARER":
                options["scram_users"] = (ScramUser(self.user, self.password, self.mechanism),)
        return options

    @property
    def client(self) -> ClientSecurity:
        """Security of mockraft's own clients and simulated brokers, the same as a broker's."""
        return read_properties(self.client_properties())

    def client_properties(self, name: str = "client.properties") -> Path:
        """A file for ``--command-config`` of Kafka's tools that ask the controller."""
        properties: dict[str, str] = {"security.protocol": self.protocol}
        if self.uses_tls:
            properties |= self._tls("", self.broker_certificate)
        if self.uses_sasl:
            properties |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._login()}
        path = self.directory / name
        write_private(path, java_properties.write(properties))
        return path

    def _tls(self, prefix: str, certificate: Certificate) -> dict[str, str]:
        assert self.authority is not None
        return {
            f"{prefix}ssl.keystore.type": "PEM",
            f"{prefix}ssl.keystore.location": str(certificate.keystore),
            f"{prefix}ssl.truststore.type": "PEM",
            f"{prefix}ssl.truststore.location": str(self.authority.certificate),
        }

    def _login(self, more: str = "") -> str:
        module = _PLAIN_MODULE if self.mechanism == "PLAIN" else _SCRAM_MODULE
        user, password = (re.sub(r'(["\\])', r"\\\1", each) for each in (self.user, self.password))
        if self.mechanism == "OAUTHBEARER":
            return f'{_BEARER_MODULE} required unsecuredLoginStringClaim_sub="{user}";'
        return f'{module} required username="{user}" password="{password}"{more};'

    def _scram_user(self) -> str:
        return f"{self.mechanism}=[name={self.user},password={self.password}]"
