"""The APIs of a broker's client listener: the shared base with broker handlers, and the context that handlers get."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mockraft.serving import api as serving_api
from mockraft.serving.api import ANONYMOUS as ANONYMOUS
from mockraft.wire.errors import ApiError as ApiError
from mockraft.wire.message import Message

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker
    from mockraft.brokers.forwarding import Forwarding
    from mockraft.brokers.image import ClusterImage

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class ConnectionClosedError(Exception):
    """The client's connection must be closed without a response; the text is the reason for the log."""


@dataclass(frozen=True, slots=True)
class Api(serving_api.Api[RequestT, ResponseT]):
    """One API of a broker.

    `await handle(request, ctx)` returns the response message (or its bytes in the request's version), None when there
    is no response (Produce with acks 0), or raises `ApiError` or `ConnectionClosedError`. `forwarded`: a controller
    answers, so only versions that the controller has too are offered.
    """

    handle: Callable[[RequestT, RequestContext], Awaitable[ResponseT | bytes | None]]
    forwarded: bool = False


AnyApi = Api[Any, Any]
"""An API of unknown message classes, as in the registry."""


@dataclass(slots=True, kw_only=True)
class RequestContext(serving_api.RequestContext):
    """Context of a client's request to a broker.

    `frame` is the request as received, header and body, without its length. `chance` is the handlers' random generator.
    """

    broker: SimulatedBroker
    listener_name: str
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
        """The forwarding of requests to the controller."""
        forwarding = self.broker.forwarding
        assert forwarding is not None, "a broker that serves clients can forward"
        return forwarding
