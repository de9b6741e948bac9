"""The components of a broker besides its lifecycle: they get the same notifications and are closed together."""

from __future__ import annotations

from typing import Protocol

from mockraft.brokers.lifecycle import BrokerState


class Component(Protocol):
    """A component of a broker, notified in the order of `SimulatedBroker.parts`. An exception ends the broker."""

    def start(self) -> None:
        """The broker starts; nothing was sent to a controller yet. An event loop is running."""

    def metadata_advanced(self) -> None:
        """More of the metadata log is committed; view and image have been updated."""

    def state_changed(self, state: BrokerState) -> None:
        """The broker's state has changed to this one."""

    async def close(self) -> None:
        """Release everything. Called once, also after a failed start."""
