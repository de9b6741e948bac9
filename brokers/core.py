"""The state that the components of a broker share: its config, lifecycle, metadata and logs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from mockraft.brokers import lifecycle
from mockraft.brokers.channel import RETRY_TIMEOUT_MS, ControllerChannel, NotSentError
from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.effects import ClientEvent, StateChanged, Stopped
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.lifecycle import BrokerState, End, Event, Lifecycle, LifecycleRequest
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.metadata.metadata_view import MetadataView
from mockraft.brokers.metadata.observer import Endpoint, FatalError, Observer
from mockraft.wire.errors import UnsupportedVersionError, WireError

_DUE = lifecycle.Due()

_log = logging.getLogger(__name__)


class Component:
    """A component of a broker, notified in the order of `Core.components`. An exception ends the broker.

    Each overrides what concerns it.
    """

    def start(self) -> None:
        """The broker starts; nothing was sent to a controller yet."""

    def metadata_advanced(self) -> None:
        """More of the metadata log is committed; view and image have been updated."""

    def state_changed(self, state: BrokerState) -> None:
        """The broker's state has changed to this one."""

    def close(self) -> None:
        """Release everything. Called once, also after a failed start."""


class Core:
    """One broker's state. `end` and `fault` give the reason for its end and the fatal answer, if any.

    `refusals` counts refused requests by error name. `image` is there for a broker that serves clients. `send` sends
    what the lifecycle orders.
    """

    def __init__(
        self, config: BrokerConfig, view: MetadataView, observer: Observer, image: ClusterImage | None, logs: Logs
    ) -> None:
        self.config = config
        self.view = view
        self.observer = observer
        self.image = image
        self.logs = logs
        self.kernel = Kernel(self.failed, self.serve)
        self.life = Lifecycle(heartbeat_interval_ms=config.heartbeat_interval_ms)
        self.fault: str | None = None
        self.end: End | None = None
        self.refusals: Counter[str] = Counter()
        self.components: list[Component] = []
        self.send: Callable[[LifecycleRequest], None]

    def controller(self) -> Endpoint | None:
        """The leader's endpoint for heartbeats, from the voter set as in Kafka's RaftControllerNodeProvider.

        Without voters in the log (kraft.version 0) the leader reports it, as with controller.quorum.voters.
        """
        leader = self.observer.leader
        if leader is None:
            return None
        if not self.observer.voters:
            return leader.endpoint if self.observer.high_watermark > 0 else None
        return self.observer.voters.get(leader.node_id, {}).get(self.config.controller_listener_name)

    def channel(self, purpose: str, retry_timeout_ms: int = RETRY_TIMEOUT_MS) -> ControllerChannel:
        """Return a connection of its own to the active controller."""
        return ControllerChannel(self.kernel, purpose, str(self.config.broker_id), self.controller, retry_timeout_ms)

    def count_refusal(self, error: Exception) -> None:
        """Count a request that could not be sent. Raises any other error."""
        if not isinstance(error, NotSentError | UnsupportedVersionError):
            raise error
        self.refusals[type(error).__name__] += 1

    def happen(self, event: Event) -> None:
        """Feed one event to the lifecycle and carry out its orders."""
        before = self.life.state
        self.life, orders = lifecycle.step(self.life, event)
        state = self.life.state
        if state is not before:
            _log.info("broker %d: %s -> %s", self.config.broker_id, before.name, state.name)
            for component in self.components:
                component.state_changed(state)
            self.kernel.emit(StateChanged(state))
            self.entered(state)
        if orders.send is not None:
            self.send(orders.send)
        if orders.wait_ms is not None:
            self.kernel.after("communication", orders.wait_ms, self._communicate)
        if orders.stop is not None:
            self.end = orders.stop
            self.kernel.stop()
            self.kernel.emit(Stopped(orders.stop))

    def entered(self, state: BrokerState) -> None:
        """Do what begins with this state; the components know it already."""

    def serve(self, event: ClientEvent) -> None:
        """Process an event of an accepted connection."""

    def failed(self, error: Exception) -> None:
        """Stop as a real broker's process would on this error, or on a defect of mockraft.

        A broker that continued without one of its components would make test results meaningless.
        """
        self.fault = str(error)
        if isinstance(error, WireError):
            addresses = ", ".join(f"{host}:{port}" for host, port in self.config.bootstrap)
            self.fault = f"a response that no Kafka controller sends: {error}; is a KRaft controller at {addresses}?"
        elif not isinstance(error, FatalError):
            _log.error("broker %s: a defect of mockraft", self.config.broker_id, exc_info=error)
            self.fault = f"a defect of mockraft: {error!r}"
        _log.error("broker %s: fatal: %s", self.config.broker_id, self.fault)
        self.happen(lifecycle.Stopped(End.FATAL))

    def _communicate(self) -> None:
        self.happen(_DUE)
