"""mockraft: a Kafka KRaft controller for tests.

    from mockraft import Controller

    async with Controller() as controller:
        ...  # brokers with controller.quorum.bootstrap.servers=<controller.bootstrap>

Names are imported when they are first used, so `import mockraft` costs nothing.
"""

# Not from typing: importing that costs more than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from mockraft.brokers.lifecycle import BrokerState
    from mockraft.kafka_api.clock import VirtualClock
    from mockraft.kafka_api.journal import Exchange, Journal, VerificationError
    from mockraft.server.controller.settings.policies import AlteredConfigs, NewTopic
    from mockraft.server.stubs.errors import StubError
    from mockraft.server.stubs.faults.chaos import chaos
    from mockraft.server.stubs.match import Match
    from mockraft.server.stubs.stub import Stub, stub
    from mockraft.server.verification import WaitTimeoutError
    from mockraft.testing.broker import SimulatedBroker, SyncSimulatedBroker
    from mockraft.testing.controller import AwaitedController, Controller, SyncController
    from mockraft.testing.fault_methods import FaultKind
    from mockraft.testing.quorum import Quorum, SyncQuorum
    from mockraft.wire.api_keys import ApiName
    from mockraft.wire.error_codes import ErrorName

__all__ = [
    "AlteredConfigs",
    "ApiName",
    "AwaitedController",
    "BrokerState",
    "Controller",
    "ErrorName",
    "Exchange",
    "FaultKind",
    "Journal",
    "Match",
    "NewTopic",
    "Quorum",
    "SimulatedBroker",
    "Stub",
    "StubError",
    "SyncController",
    "SyncQuorum",
    "SyncSimulatedBroker",
    "VerificationError",
    "VirtualClock",
    "WaitTimeoutError",
    "chaos",
    "stub",
]

_NAMES = {
    "brokers.lifecycle": ("BrokerState",),
    "testing.broker": ("SimulatedBroker", "SyncSimulatedBroker"),
    "testing.controller": ("AwaitedController", "Controller", "SyncController"),
    "testing.fault_methods": ("FaultKind",),
    "testing.quorum": ("Quorum", "SyncQuorum"),
    "kafka_api.clock": ("VirtualClock",),
    "server.controller.settings.policies": ("AlteredConfigs", "NewTopic"),
    "kafka_api.journal": ("Exchange", "Journal", "VerificationError"),
    "server.stubs.errors": ("StubError",),
    "server.stubs.faults.chaos": ("chaos",),
    "server.stubs.match": ("Match",),
    "server.stubs.stub": ("Stub", "stub"),
    "server.verification": ("WaitTimeoutError",),
    "wire.api_keys": ("ApiName",),
    "wire.error_codes": ("ErrorName",),
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"mockraft.{module}"), name)
    raise AttributeError(f"module 'mockraft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
