"""Registration and heartbeats of one broker: the requests of its lifecycle, over the channel "heartbeat"."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mockraft.brokers import lifecycle
from mockraft.brokers.config import registers_cordoned_dirs, registration_of
from mockraft.brokers.core import Core
from mockraft.brokers.effects import Versions
from mockraft.brokers.lifecycle import LifecycleRequest
from mockraft.releases import Behaviour
from mockraft.wire import error_codes
from mockraft.wire.connection import version_for
from mockraft.wire.directory_ids import in_java_order
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.broker_registration_response import BrokerRegistrationResponse

_log = logging.getLogger(__name__)


class Heartbeats:
    """Sends what the lifecycle orders, one request at a time, and reports the result to it.

    `answered` counts heartbeats that were answered with error 0. `took`, if set, is called with the latency of each in
    seconds, measured from the first attempt. A frozen broker sends nothing.
    """

    __slots__ = ("_core", "_held_back", "_is_frozen", "_sent_ms", "answered", "channel", "took")

    def __init__(self, core: Core) -> None:
        # Half a session, so that there is time to switch from a stuck controller to another (KAFKA-14392).
        timeout_ms = core.config.session_timeout_ms // 2
        self.channel = core.channel("heartbeat", timeout_ms)
        self.answered = 0
        self.took: Callable[[float], None] | None = None
        self._core = core
        self._sent_ms = 0.0
        self._is_frozen = False
        self._held_back: LifecycleRequest | None = None

    def send(self, what: LifecycleRequest) -> None:
        """Send a registration or a heartbeat for the broker's current state."""
        if self._is_frozen:
            self._held_back = what
        elif what is LifecycleRequest.REGISTRATION:
            self.channel.send(self._registration, self._registered, self._not_answered)
        else:
            self._sent_ms = self._core.kernel.now_ms
            self.channel.send(self._heartbeat, self._came, self._not_answered)

    def freeze(self) -> None:
        """Send nothing until :meth:`thaw`."""
        self._is_frozen = True

    def thaw(self) -> None:
        """Resume, and send what was due meanwhile."""
        self._is_frozen = False
        held, self._held_back = self._held_back, None
        if held is not None:
            self.send(held)

    def _registration(self, versions: Versions) -> BrokerRegistrationRequest:
        core = self._core
        return registration_of(core.config, version_for(BrokerRegistrationRequest, versions), core.life.cordoned_dirs)

    def _heartbeat(self, _: Versions) -> BrokerHeartbeatRequest:
        core, life = self._core, self._core.life
        reports_cordoned = (life.caught_up and core.view.has(Behaviour.CORDONED_LOG_DIRS)) or registers_cordoned_dirs(
            core.config
        )
        return BrokerHeartbeatRequest(
            broker_id=core.config.broker_id,
            broker_epoch=life.broker_epoch,
            current_metadata_offset=core.observer.applied_offset,
            want_fence=life.want_fence,
            want_shut_down=life.want_shut_down,
            offline_log_dirs=list(life.offline_dirs),
            cordoned_log_dirs=in_java_order(life.cordoned_dirs) if reports_cordoned else None,
        )

    def _registered(self, response: BrokerRegistrationResponse) -> None:
        if self._is_accepted(response):
            self._core.happen(lifecycle.Registered(response.broker_epoch))

    def _came(self, response: BrokerHeartbeatResponse) -> None:
        if not self._is_accepted(response):
            return
        self.answered += 1
        if self.took is not None:
            self.took((self._core.kernel.now_ms - self._sent_ms) / 1000)
        self._core.happen(
            lifecycle.HeartbeatAnswered(response.is_caught_up, response.is_fenced, response.should_shut_down)
        )

    def _is_accepted(self, response: BrokerRegistrationResponse | BrokerHeartbeatResponse) -> bool:
        if response.error_code == error_codes.NONE:
            return True
        name = error_codes.name(response.error_code)
        self._core.refusals[name] += 1
        _log.warning("broker %d: %s: %s", self._core.config.broker_id, type(response).__name__, name)
        self._core.happen(lifecycle.Refused(response.error_code))
        return False

    def _not_answered(self, error: Exception) -> None:
        self._core.count_refusal(error)
        self._core.happen(lifecycle.NotAnswered(str(error)))
