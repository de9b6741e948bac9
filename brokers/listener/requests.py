"""Processing of one request from its bytes to the bytes of its response, without sockets.

Raises `ConnectionClosedError` where Kafka closes the connection: a header or body that cannot be read, an API or
version that is not served (except that any version of ApiVersions is answered).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from mockraft.brokers.apis.api import NO_RESPONSE, AnyApi, ApiError, ConnectionClosedError, Parked, RequestContext
from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request, parse_request, write_response
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message

Reply: TypeAlias = "bytes | Parked[Reply]"
"""A response's bytes, length included (NO_RESPONSE: nothing is sent), or a request that must wait."""
_Handled: TypeAlias = Message | bytes | Parked[Message | bytes] | None

_log = logging.getLogger(__name__)


class Readable(NamedTuple):
    """A parsed request: its API, its header and its body."""

    api: AnyApi
    header: Request
    body: Message


def read(frame: bytes, apis: Mapping[int, AnyApi]) -> Readable:
    """Read one frame. Raises ConnectionClosedError."""
    try:
        header = parse_request(frame)
        api = apis.get(header.api_key)
        if api is None:
            raise WireError(f"API {api_keys.name(header.api_key)} ({header.api_key}) is not served on this listener")
        low, high = api.versions
        if low <= header.api_version <= high:
            return Readable(api, header, api.request.read_from(frame, header.api_version, header.body_offset)[0])
        if header.api_key == api_keys.API_VERSIONS:
            return Readable(api, header, api.request())
        raise WireError(f"{api_keys.name(header.api_key)} ({header.api_key}) has no version {header.api_version} here")
    except WireError as wrong:
        raise ConnectionClosedError(str(wrong)) from wrong


def answer(request: Readable, ctx: RequestContext) -> Reply:
    """Call the handler, at once or when a slow disk is ready. Raises ConnectionClosedError.

    An unexpected exception is a defect of this program: it is logged, and the client receives UNKNOWN_SERVER_ERROR.
    """
    api, _, body = request

    def handle(now_ms: int) -> Reply:
        ctx.now_ms = now_ms
        reply = _reply(request, ctx, lambda: api.handle(body, ctx))
        assert reply is not None, "a handler answers or parks"
        return reply

    delay_ms = ctx.broker.replicas.disk_delay_ms(api.replicas(body, ctx)) if api.replicas is not None else 0
    if delay_ms <= 0:
        return handle(ctx.now_ms)
    return Parked(ctx.now_ms + int(delay_ms), lambda now_ms, expired: handle(now_ms) if expired else None)


def _reply(request: Readable, ctx: RequestContext, call: Callable[[], _Handled]) -> Reply | None:
    """Return the result of a handler, or of a retry, in bytes; None if it stays parked."""
    api, header, body = request
    try:
        result = call()
    except ApiError as refusal:
        result = api.error(body, refusal.error_code, refusal.message)
    except ConnectionClosedError:
        raise
    except Exception:
        _log.exception("broker %d: %s broke", ctx.broker.config.broker_id, api_keys.name(header.api_key))
        result = api.unknown_server_error(body)
    if isinstance(result, Parked):
        return _parked(request, ctx, result)
    if result is None:
        return None
    if result == NO_RESPONSE:
        return NO_RESPONSE
    low, high = api.versions
    version = header.api_version if low <= header.api_version <= high else 0
    try:
        written = result if isinstance(result, bytes) else result.write(version)
    except WireError as wrong:
        _log.exception("broker %d: %s v%d", ctx.broker.config.broker_id, api_keys.name(header.api_key), version)
        raise ConnectionClosedError(f"the response cannot be written in version {version}: {wrong}") from wrong
    return write_response(written, header.correlation_id, messages.response_header_version(header.api_key, version))


def _parked(request: Readable, ctx: RequestContext, parked: Parked[Message | bytes]) -> Parked[Reply]:
    def attempt(now_ms: int, expired: bool) -> Message | bytes | None:
        result = parked.retry(now_ms, expired)
        if result is None and expired:
            raise AssertionError("a parked request was not answered at its deadline")
        return result

    return Parked(parked.deadline_ms, lambda now_ms, expired: _reply(request, ctx, lambda: attempt(now_ms, expired)))
