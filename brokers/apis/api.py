"""What an API of a broker's client listener is made of, and what its handler is told about a request."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mockraft.wire.errors import ApiError as ApiError

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.forwarding import Forwarding
    from mockraft.brokers.image import ClusterImage

ANONYMOUS = "User:ANONYMOUS"
"""Who asks on a PLAINTEXT listener."""


class ConnectionClosedError(Exception):
    """There is no answer but to close the client's connection; the text says why, for the log."""


class Api(NamedTuple):
    """One API: its message classes, its handler, its error form and the versions that are served.

    `await handle(request, ctx)` gives the response message (or its bytes, written in the version that was asked in),
    None when there is none to give (Produce with acks 0), or raises `ApiError` or `ConnectionClosedError`.
    `error(request, error_code, message)` is the response that says an error as this API says errors.
    Versions are those of the messages unless given. `forwarded`: a controller answers, so only the versions that it
    has, too, are offered.
    """

    request: Any
    response: Any
    handle: Callable[[Any, RequestContext], Awaitable[Any]]
    error: Callable[[Any, int, str | None], Any]
    min_version: int = -1
    max_version: int = -1
    forwarded: bool = False

    @property
    def api_key(self) -> int:
        """Number of the API on the wire."""
        return int(self.request.api_key)

    @property
    def versions(self) -> tuple[int, int]:
        """The lowest and the highest version that is served."""
        low, high = self.min_version, self.max_version
        return (self.request.min_version if low < 0 else low, self.request.max_version if high < 0 else high)


@dataclass(slots=True)
class RequestContext:
    """Who asked, how and of whom (Kafka's RequestContext).

    `principal` is written as `User:name`, `client_address` is an IP address, `frame` the request as it came, header
    and body, without its length. `chance` is what a handler draws from.
    """

    broker: SimulatedBroker
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    principal: str
    listener_name: str
    client_address: str
    frame: bytes
    chance: random.Random

    @property
    def image(self) -> ClusterImage:
        """The cluster's committed metadata as this broker knows it now."""
        image = self.broker.image
        assert image is not None, "a broker that serves clients has an image"
        return image

    @property
    def forwarding(self) -> Forwarding:
        """The way to the controller."""
        forwarding = self.broker.forwarding
        assert forwarding is not None, "a broker that serves clients can forward"
        return forwarding
