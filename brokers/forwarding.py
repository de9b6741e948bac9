"""Forwarding of clients' requests to the active controller (ForwardingManager, KIP-590).

The request goes unchanged, header included, in an Envelope with the client's principal and address; the response
returns the same way and is unwrapped. One channel, opened with the first forwarded request; a request is sent again
until `retry_timeout_ms` is over, and then the client receives REQUEST_TIMED_OUT.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Mapping
from struct import Struct
from typing import TYPE_CHECKING

from mockraft.brokers.apis.api import AnyApi, ApiError, ConnectionClosedError, Parked, RequestContext, ResponseT
from mockraft.brokers.channel import NotSentError
from mockraft.brokers.core import Component, Core
from mockraft.kafka_api.api import NEVER_MS
from mockraft.wire import error_codes, messages
from mockraft.wire.connection import write_request
from mockraft.wire.errors import UnsupportedVersionError, WireError
from mockraft.wire.message import Message
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.messages.response_header import ResponseHeader
from mockraft.wire.principals import write_principal

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

_CORRELATION = Struct(">i")

_log = logging.getLogger(__name__)


class Forwarding(Component):
    """The component with the channel that Kafka calls "forwarding".

    `changed` is called after each answer, so that parked requests are retried.
    """

    def __init__(self, core: Core, changed: Callable[[], None]) -> None:
        self._broker_id = core.config.broker_id
        self.channel = core.channel("forwarding")
        self._changed = changed

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """The API versions of the controller, (min, max) by API key; None while the channel is not open."""
        return self.channel.api_versions

    def metadata_advanced(self) -> None:
        """Wake the channel: a controller may be known now."""
        self.channel.controller_moved()

    def close(self) -> None:
        """Close the channel."""
        self.channel.close()

    def forward(self, api: AnyApi, ctx: RequestContext, frame: bytes | None = None) -> Parked[bytes]:
        """Send a client's request to the controller; the result is the body of the response, in the request's version.

        `frame` is the request with its header when it differs from the received one. The retry raises ApiError for
        REQUEST_TIMED_OUT and for what Kafka's brokers turn into UNKNOWN_SERVER_ERROR, ConnectionClosedError when the
        controller does not know the version: the client has to send ApiVersions again.
        """
        answers: list[EnvelopeResponse | ApiError] = []
        self.send(envelope_of(ctx.header.frame if frame is None else frame, ctx), answers.append)

        def retry(_now_ms: int, _expired: bool) -> bytes | None:
            return self._opened(answers[0], api, ctx) if answers else None

        # No deadline: the channel gives up in time.
        return Parked(NEVER_MS, retry)

    def send(self, request: RequestMessage[ResponseT], answered: Callable[[ResponseT | ApiError], None]) -> None:
        """Send a request over the channel, after the waiting ones; call back with its response or an ApiError."""

        def came(answer: ResponseT | ApiError) -> None:
            answered(answer)
            self._changed()

        self.channel.send(lambda _: request, came, lambda error: came(self._refusal(error)))

    def _refusal(self, error: Exception) -> ApiError:
        if isinstance(error, NotSentError):
            return ApiError(error_codes.REQUEST_TIMED_OUT)
        if not isinstance(error, UnsupportedVersionError | WireError):
            raise error
        _log.warning("broker %d: forwarding failed: %s", self._broker_id, error)
        return _unknown_error()

    def _opened(self, response: EnvelopeResponse | ApiError, api: AnyApi, ctx: RequestContext) -> bytes:
        """Return the body in an envelope's response. Raises as `forward` says."""
        if isinstance(response, ApiError):
            raise response
        if response.error_code == error_codes.UNSUPPORTED_VERSION:
            raise ConnectionClosedError("the controller does not know this version of the forwarded request")
        if response.error_code != error_codes.NONE:
            name = error_codes.name(response.error_code)
            _log.warning("broker %d: an envelope was refused: %s", self._broker_id, name)
            raise _unknown_error()
        try:
            return _unwrapped(response.response_data or b"", api, ctx)
        except WireError as wrong:
            _log.warning("broker %d: an envelope has no valid response: %s", self._broker_id, wrong)
            raise _unknown_error() from wrong


def frame_of(request: Message, ctx: RequestContext) -> bytes:
    """Return a request with the received one's header, in the form that an envelope carries."""
    return write_request(request, ctx.api_version, ctx.correlation_id, ctx.header.client_id)[4:]


def envelope_of(frame: bytes, ctx: RequestContext) -> EnvelopeRequest:
    """Return an envelope of the requesting client around a request, header and body."""
    return EnvelopeRequest(
        request_data=frame,
        request_principal=write_principal(ctx.principal),
        client_host_address=ipaddress.ip_address(ctx.client_address).packed,
    )


def _unwrapped(data: bytes, api: AnyApi, ctx: RequestContext) -> bytes:
    """Return the body of a response that starts with its header. Raises WireError when it is for another request."""
    if len(data) < _CORRELATION.size or _CORRELATION.unpack_from(data)[0] != ctx.correlation_id:
        raise WireError(f"the response is not for request {ctx.correlation_id}")
    header_version = messages.response_header_version(api.api_key, ctx.api_version)
    _, offset = ResponseHeader.read_from(data, header_version, 0)
    body = data[offset:]
    api.response.read(body, ctx.api_version)
    return body


def _unknown_error() -> ApiError:
    return ApiError(error_codes.UNKNOWN_SERVER_ERROR, error_codes.message(error_codes.UNKNOWN_SERVER_ERROR))
