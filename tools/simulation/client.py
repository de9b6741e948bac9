"""The client of a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from mockraft.brokers.effects import Effect, Event, Link
from mockraft.brokers.kernel import Kernel

from .processes import Process, failed, whole


class Client(Process):
    """A client of controllers and brokers; it is never killed."""

    def boot(self) -> None:
        self.kernel = Kernel(failed)

    def end(self) -> None:
        """Nothing to release."""

    def feed(self, event: Event) -> None:
        self._perform(self.kernel.step(event, self.now_ms))

    def client_sent(self, connection_id: int, data: bytes) -> None:
        """Nobody connects to a client."""

    def client_gone(self, connection_id: int) -> None:
        """Nobody connects to a client."""

    def next_tick_ms(self) -> int:
        return whole(self.kernel.next_deadline_ms)

    def tick(self) -> None:
        self._perform(self.kernel.tick(self.now_ms))

    def request(self, host: str, message: Any, version: int, answered: Callable[[Any], None]) -> None:
        """Send a request; `answered` gets the response, and is not called without one."""
        link = Link("client", "client", host, 9092, 1_000, handshake=False)
        request = partial(
            self.kernel.request, link, lambda _: message, answered, lambda _: None, version=version, timeout_ms=10_000
        )
        self._perform(self.kernel.run(self.now_ms, request))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.links.perform(effect)
        self.settle()
