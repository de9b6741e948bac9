"""What a broker is made of besides its lifecycle: parts that hear of the same things and are closed together."""

from __future__ import annotations

from typing import Protocol

from mockraft.brokers.lifecycle import BrokerState


class Part(Protocol):
    """A part of a broker, told in the order of `SimulatedBroker.parts`. What it raises ends the broker."""

    def start(self) -> None:
        """The broker starts; nothing was sent to a controller yet. A loop is running."""

    def metadata_advanced(self) -> None:
        """More of the metadata log is committed; view and image have it."""

    def state_changed(self, state: BrokerState) -> None:
        """The broker is in another state of its life now."""

    async def close(self) -> None:
        """The broker is over: let go of everything. Called once, also after a start that failed."""
