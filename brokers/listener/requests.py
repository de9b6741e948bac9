"""Processing of one request from its bytes to the bytes of its response, without sockets.

Raises `ConnectionClosedError` where Kafka closes the connection: a header or body that cannot be read, an API or
version that is not served (except that any version of ApiVersions is answered).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from mockraft.brokers.apis.api import AnyApi, ApiError, ConnectionClosedError, RequestContext
from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request, parse_request, write_response
from mockraft.wire.errors import WireError

_log = logging.getLogger(__name__)


class Readable(NamedTuple):
    """A parsed request: its API, its header and its body."""

    api: AnyApi
    header: Request
    body: Any


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


async def answer(request: Readable, ctx: RequestContext) -> bytes | None:
    """Return the response's bytes, length included; None when there is no response. Raises ConnectionClosedError.

    An unexpected exception is a defect of this program: it is logged, and the client receives UNKNOWN_SERVER_ERROR.
    """
    api, header, body = request
    try:
        response = await api.handle(body, ctx)
    except ApiError as refusal:
        response = api.error(body, refusal.error_code, refusal.message)
    except ConnectionClosedError:
        raise
    except Exception:
        _log.exception("broker %d: %s broke", ctx.broker.config.broker_id, api_keys.name(header.api_key))
        response = api.unknown_server_error(body)
    if response is None:
        return None
    low, high = api.versions
    version = header.api_version if low <= header.api_version <= high else 0
    try:
        written = response if isinstance(response, bytes) else response.write(version)
    except WireError as wrong:
        _log.exception("broker %d: %s v%d", ctx.broker.config.broker_id, api_keys.name(header.api_key), version)
        raise ConnectionClosedError(f"the response cannot be written in version {version}: {wrong}") from wrong
    return write_response(written, header.correlation_id, messages.response_header_version(header.api_key, version))
