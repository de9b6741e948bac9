"""The server.properties that correspond to a simulated broker's config."""

from __future__ import annotations

from mockraft.brokers.config import BrokerConfig, Listener
from mockraft.wire.client_security import PROTOCOLS


def static_configs(config: BrokerConfig) -> dict[str, str]:
    """Return keys and values, including `config.properties`; unset keys with default values are left out."""
    controllers = config.controller_listener_name
    named = [f"{each.name}:{_protocol(each)}" for each in config.listeners]
    protocol = "PLAINTEXT"
    if config.security is not None:
        ends = ("SSL" if config.security.tls is not None else "PLAINTEXT",)
        protocol = "_".join(("SASL", *ends) if config.security.login is not None else ends)
    values = {
        "process.roles": "broker",
        "node.id": str(config.broker_id),
        "controller.quorum.bootstrap.servers": ",".join(f"{host}:{port}" for host, port in config.bootstrap),
        "controller.listener.names": controllers,
        "listeners": ",".join(f"{each.name}://{each.host}:{each.port}" for each in config.listeners),
        "listener.security.protocol.map": ",".join([f"{controllers}:{protocol}", *named]),
        "log.dirs": ",".join(log_dir.path for log_dir in config.log_dirs),
    }
    if config.rack is not None:
        values["broker.rack"] = config.rack
    if config.cordoned_log_dirs:
        values["cordoned.log.dirs"] = config.cordoned_log_dirs
    return values | dict(config.properties)


def _protocol(listener: Listener) -> str:
    return PROTOCOLS[listener.security_protocol]
