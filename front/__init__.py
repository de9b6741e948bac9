"""mockraft: a Kafka KRaft controller for tests.

    from mockraft import Controller

    async with Controller() as controller:
        ...  # brokers with controller.quorum.bootstrap.servers=<controller.bootstrap>

Names are imported when they are first used, so `import mockraft` costs nothing.
"""

# Not from typing: importing that costs more than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from mockraft.brokers import BrokerState
    from mockraft.double.broker import SimulatedBroker, SyncSimulatedBroker
    from mockraft.double.controller import AwaitedController, Controller, SyncController
    from mockraft.double.quorum import Quorum, SyncQuorum
    from mockraft.double.verification import WaitTimeoutError
    from mockraft.server.clock import VirtualClock
    from mockraft.server.controller.settings.policies import AlteredConfigs, NewTopic
    from mockraft.server.journal import Exchange, Journal, VerificationError
    from mockraft.server.stubs.errors import StubError
    from mockraft.server.stubs.faults.chaos import chaos
    from mockraft.server.stubs.match import Match
    from mockraft.server.stubs.stub import Stub, stub

__all__ = [
    "AlteredConfigs",
    "AwaitedController",
    "BrokerState",
    "Controller",
    "Exchange",
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

_HOMES = {
    "AlteredConfigs": "mockraft.server.controller.settings.policies",
    "AwaitedController": "mockraft.double.controller",
    "BrokerState": "mockraft.brokers",
    "Controller": "mockraft.double.controller",
    "Exchange": "mockraft.server.journal",
    "Journal": "mockraft.server.journal",
    "Match": "mockraft.server.stubs.match",
    "NewTopic": "mockraft.server.controller.settings.policies",
    "Quorum": "mockraft.double.quorum",
    "SimulatedBroker": "mockraft.double.broker",
    "Stub": "mockraft.server.stubs.stub",
    "StubError": "mockraft.server.stubs.errors",
    "SyncController": "mockraft.double.controller",
    "SyncQuorum": "mockraft.double.quorum",
    "SyncSimulatedBroker": "mockraft.double.broker",
    "VerificationError": "mockraft.server.journal",
    "VirtualClock": "mockraft.server.clock",
    "WaitTimeoutError": "mockraft.double.verification",
    "chaos": "mockraft.server.stubs.faults.chaos",
    "stub": "mockraft.server.stubs.stub",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'mockraft' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
