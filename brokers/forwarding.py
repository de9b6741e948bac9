"""How a broker hands its clients' requests on to the active controller (ForwardingManager, KIP-590).

The request goes as it came, header and all, in an Envelope with the client's principal and address; the answer comes
back in the same way and is unwrapped. One channel, opened with the first such request; a request is sent again until
`retry_timeout_ms` is over, and then the client hears REQUEST_TIMED_OUT.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any

from mockraft.brokers.apis.api import Api, ApiError, ConnectionClosedError, RequestContext
from mockraft.brokers.channel import ControllerChannel, NotSentError
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.topic_creation import TopicCreation
from mockraft.wire import client, error_codes, messages
from mockraft.wire.connection import write_request
from mockraft.wire.errors import WireError
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.response_header import ResponseHeader

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker

RETRY_TIMEOUT_MS = 60_000
_PRINCIPAL_VERSION = Struct(">h")
_CORRELATION = Struct(">i")

_log = logging.getLogger(__name__)


class Forwarding:
    """The part of a broker with the channel that Kafka calls "forwarding", and `creation` of topics over it."""

    def __init__(self, broker: SimulatedBroker) -> None:
        config = broker.config
        self._broker = broker
        self.channel = ControllerChannel(
            str(config.broker_id), broker.controller, RETRY_TIMEOUT_MS, config.security, config.messages
        )
        self.creation = TopicCreation(self, broker)
        self._one_at_a_time = asyncio.Lock()

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """What the controller offers, (min, max) by API key; None while the channel is not open."""
        return self.channel.api_versions

    def start(self) -> None:
        """Nothing to do: the channel is opened when something is forwarded."""

    def metadata_advanced(self) -> None:
        """There may be a controller now."""
        self.channel.controller_moved()

    def state_changed(self, state: BrokerState) -> None:
        """It makes no difference in which state the broker is."""

    async def close(self) -> None:
        """Close the channel."""
        await self.channel.close()

    async def forward(self, api: Api, request: Any, ctx: RequestContext, frame: bytes | None = None) -> bytes:
        """The body of the controller's answer to a client's request, in the version that the client asked in.

        `frame` is the request with its header when it is not the one that came. Raises ApiError for REQUEST_TIMED_OUT
        and for what Kafka's brokers call UNKNOWN_SERVER_ERROR, ConnectionClosedError when the controller does not know
        the version: the client has to ask anew what there is.
        """
        envelope = envelope_of(ctx.frame if frame is None else frame, ctx)
        response = await self.send(lambda _: envelope)
        if response.error_code == error_codes.UNSUPPORTED_VERSION:
            raise ConnectionClosedError("the controller does not know this version of the forwarded request")
        if response.error_code != error_codes.NONE:
            name = error_codes.name(response.error_code)
            _log.warning("broker %d: an envelope was refused: %s", self._broker.config.broker_id, name)
            raise _unknown_error()
        try:
            return _unwrapped(response.response_data or b"", api, ctx)
        except WireError as wrong:
            _log.warning("broker %d: an envelope holds no answer: %s", self._broker.config.broker_id, wrong)
            raise _unknown_error() from wrong

    async def send(self, make: Callable[[client.KafkaConnection], Any]) -> Any:
        """Send a request of the broker's own over the channel, after those that wait already; its response.

        Raises ApiError as `forward` does.
        """
        try:
            async with asyncio.timeout(self.channel.retry_timeout_ms / 1000), self._one_at_a_time:
                return await self.channel.send(make)
        except (NotSentError, TimeoutError) as error:
            raise ApiError(error_codes.REQUEST_TIMED_OUT) from error
        except (client.UnsupportedVersionError, WireError) as error:
            _log.warning("broker %d: forwarding failed: %s", self._broker.config.broker_id, error)
            raise _unknown_error() from error


def frame_of(request: Any, ctx: RequestContext) -> bytes:
    """A request with the header of the one that came, as it is put into an envelope."""
    return write_request(request, ctx.api_version, ctx.correlation_id, ctx.client_id)[4:]


def envelope_of(frame: bytes, ctx: RequestContext) -> EnvelopeRequest:
    """A request, header and body, in an envelope of the one who asked."""
    return EnvelopeRequest(
        request_data=frame,
        request_principal=principal_bytes(ctx.principal),
        client_host_address=ipaddress.ip_address(ctx.client_address).packed,
    )


def principal_bytes(principal: str) -> bytes:
    """DefaultKafkaPrincipalBuilder.serialize of a principal such as `User:name`."""
    kind, _, name = principal.partition(":")
    data = DefaultPrincipalData(type=kind, name=name, token_authenticated=False)
    return _PRINCIPAL_VERSION.pack(DefaultPrincipalData.max_version) + data.write(DefaultPrincipalData.max_version)


def _unwrapped(data: bytes, api: Api, ctx: RequestContext) -> bytes:
    """The body of an answer that begins with its header, if it is one to this request."""
    if len(data) < _CORRELATION.size or _CORRELATION.unpack_from(data)[0] != ctx.correlation_id:
        raise WireError(f"the answer is not to request {ctx.correlation_id}")
    header_version = messages.response_header_version(api.api_key, ctx.api_version)
    _, offset = ResponseHeader.read_from(data, header_version, 0)
    body = data[offset:]
    api.response.read(body, ctx.api_version)
    return body


def _unknown_error() -> ApiError:
    return ApiError(error_codes.UNKNOWN_SERVER_ERROR, error_codes.message(error_codes.UNKNOWN_SERVER_ERROR))
