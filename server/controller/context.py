"""The parts of a controller that its operations use.

Operations take a `ControllerContext`, so that no decision depends on `mockraft.server.controller.controller`, which
depends on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import random

    from mockraft.releases import Behaviour, Release
    from mockraft.server.config import ControllerConfig
    from mockraft.server.controller.brokers.heartbeat_states import HeartbeatStates, Sessions
    from mockraft.server.controller.image import Image
    from mockraft.server.controller.image.cluster import BrokerRegistration
    from mockraft.server.controller.log.metadata_log import MetadataLog
    from mockraft.server.controller.result import ControllerResult
    from mockraft.server.controller.topics.racks import UsableRacks

T = TypeVar("T")


class ControllerContext(Protocol):
    """State that operations read, and `commit`; implemented by `Controller`.

    `policy_failure` is the traceback of a policy that raised in the current request, empty for none.
    """

    config: ControllerConfig
    image: Image
    log: MetadataLog
    sessions: Sessions
    heartbeats: HeartbeatStates
    usable_racks: UsableRacks
    rng: random.Random
    incarnation_id: bytes
    policy_failure: str

    @property
    def fenced_in_steps(self) -> int | None:
        """Id of the broker that is being fenced in steps, if there is one."""

    def continue_steps(self, now_ms: int) -> None:
        """Make the next step of the fencing that is made in steps, if there is one."""

    def why_silent(self, broker_id: int, since_ms: int) -> str:
        """Return what kept a broker's heartbeats away since a time, if it is known."""

    def has(self, behaviour: Behaviour) -> bool:
        """Return True if this controller has the behaviour: by its release, its levels or a proposal."""

    @property
    def release(self) -> Release:
        """The Kafka release whose controller this is."""

    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        """Return the range of levels of every feature that this controller supports."""

    @property
    def static_configs(self) -> Mapping[str, str]:
        """Configs of the own node, by broker key."""

    def is_active(self, broker_id: int) -> bool:
        """Return True if the broker is registered, unfenced and not in controlled shutdown."""

    def check_broker_epoch(self, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        """Return the broker's registration. ApiError STALE_BROKER_EPOCH unless it is registered at this epoch."""

    def commit(self, result: ControllerResult[T], now_ms: int) -> T:
        """Append the records, apply them to the image, and then return the response."""
