"""Clusters that clients' own tests expect: real brokers, with mockraft or Kafka's own controller behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from mockraft.kafka.child_process import free_port
from mockraft.kafka.cluster import ControllerKind, KafkaCluster
from mockraft.kafka.mockraft_process import MockraftController

_MODULES = "org.apache.kafka.common.security"
_SASL = "listener.name.sasl."
_PROPERTIES = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,INSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    f"{_SASL}plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required "
    'user_adminplain="admin-secret" user_testuser="testpass";',
    f"{_SASL}scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    f"{_SASL}scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    # Kafka's own default takes tokens without a signature.
    f"{_SASL}oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS;User:adminplain;User:adminscram256;User:adminscram512",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "message.max.bytes": "200000000",
}
_AUTHORIZER = ("authorizer.class.name", "allow.everyone.if.no.acl.found", "super.users")
_SCRAM_USERS = [
    ("testuser", ScramMechanism.SCRAM_SHA_256, b"testpass"),
    ("adminscram256", ScramMechanism.SCRAM_SHA_256, b"admin-secret-256"),
    ("adminscram512", ScramMechanism.SCRAM_SHA_512, b"admin-secret-512"),
]


@dataclass(frozen=True)
class Shape:
    """Brokers of a suite's cluster, with node ids from `first_id` on.

    Broker n of `ports` listens in plaintext on that port of localhost and with SASL on the next; without ports, on free
    ones.
    """

    brokers: int = 3
    first_id: int = 1
    ports: tuple[int, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


class ClientCluster(KafkaCluster):
    """The cluster and the addresses of its listeners, each of all brokers with commas between."""

    def __init__(self, folder: Path, controller: ControllerKind, version: str, shape: Shape) -> None:
        properties = {**_PROPERTIES, **shape.properties}
        super().__init__(
            folder, controller=controller, versions=(version,) * shape.brokers, broker_properties=properties
        )
        if isinstance(self.controller, MockraftController):
            self.controller.options += ["--allow-everyone-if-no-acl-found", "--super-users", properties["super.users"]]
        else:
            self.controller.properties |= {key: properties[key] for key in _AUTHORIZER}
        self.sasl_ports: list[int] = []
        for at, broker in enumerate(self.brokers.values()):
            broker.properties["node.id"] = str(shape.first_id + at)
            broker.heap = ("-Xmx512m",)
            broker.port, sasl = (shape.ports[at], shape.ports[at] + 1) if shape.ports else (broker.port, free_port())
            self.sasl_ports.append(sasl)
            inside = free_port()
            listeners = {"PLAINTEXT": broker.port, "SASL": sasl, "INSIDE": inside}
            broker.properties["listeners"] = _as_property("127.0.0.1", listeners)
            broker.properties["advertised.listeners"] = _as_property("localhost", listeners)

    @property
    def sasl_servers(self) -> str:
        """Addresses of the SASL listeners."""
        return ",".join(f"127.0.0.1:{port}" for port in self.sasl_ports)

    def start(self, timeout_s: float = 60) -> None:
        """Start the cluster and add its SCRAM users."""
        super().start(timeout_s)
        inside = self.brokers[1].properties["listeners"].rpartition("//")[2]
        admin = AdminClient({"bootstrap.servers": inside})
        changes: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password)
            for user, mechanism, password in _SCRAM_USERS
        ]
        for done in admin.alter_user_scram_credentials(changes).values():
            done.result(60)


def _as_property(host: str, ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{host}:{port}" for name, port in ports.items())
