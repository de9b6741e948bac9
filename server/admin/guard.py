"""Checks of every request before it reaches an operation: its origin, its token and its size."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
from collections.abc import Callable
from email.message import Message as Headers
from functools import partial

from mockraft.server.admin.json_bodies import CHUNK_LENGTH
from mockraft.server.admin.problems import ProblemError, problem_response
from mockraft.server.admin.settings import AdminSettings, is_private_name
from starlette.datastructures import Headers as RequestHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ARRIVING_BYTES_MAX = 64 << 20
"""Bytes of all bodies that are not complete, beside the largest state."""
STATE_FILE = "/v1/state/file"
OPEN_PATHS = ("/", "/v1/health", "/openapi.json")
PAGE_PREFIX = "/page/"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
JSON_TYPES = ("application/json",)
BODY_TYPES = {STATE_FILE: ("application/octet-stream",)}
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-cache"),
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"),
)
"""Headers of every answer: the page's own folder also serves the page, and no other site may frame it."""


_PORT = re.compile(r":\d*$")


class Guard:
    """ASGI middleware: refuse foreign host names and origins, missing tokens, long and slow bodies.

    A browser that was directed here by another site's DNS name (DNS rebinding) sends that name in Host; another site's
    script sends its site in Origin. Without a token both are refused; with a token any name is allowed, because other
    sites do not have the token.
    """

    def __init__(self, app: ASGIApp, settings: AdminSettings) -> None:
        self.app = app
        self.settings = settings
        self._arriving_bytes_max = settings.state_bytes_max + ARRIVING_BYTES_MAX
        self._arriving: dict[asyncio.Timeout, int] = {}
        """Bytes so far of the bodies that are not complete, oldest first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in HEADERS if h[0] not in there)]
            body = message.get("body", b"")
            last = max(0, (len(body) - 1) // CHUNK_LENGTH * CHUNK_LENGTH)
            for begin in range(0, last, CHUNK_LENGTH):  # a slow reader has a copy of one piece, not of all
                await send({**message, "body": body[begin : begin + CHUNK_LENGTH], "more_body": True})
            await send({**message, "body": body[last:]} if last else message)

        try:
            headers = RequestHeaders(scope=scope)
            self._admit(scope, headers)
            receive = await self._with_body(scope, headers, receive)
        except ProblemError as refusal:
            response = problem_response(refusal.status_code, str(refusal.detail), refusal.errors, refusal.headers)  # type: ignore[arg-type]
            await response(scope, receive, send_headed)
            return
        with contextlib.suppress(asyncio.CancelledError):  # the server stops, and its log is no place for a traceback
            await self.app(scope, receive, send_headed)

    def _admit(self, scope: Scope, headers: RequestHeaders) -> None:
        host = headers.get("host", "")
        name = host if host.endswith("]") else _PORT.sub("", host)
        token = self.settings.token
        if token is None and not (is_private_name(name) or name == self.settings.host):
            raise ProblemError(
                403, f"Host {name!r} is a public DNS name, which may point here from any site: use 127.0.0.1"
            )
        if scope["method"] not in SAFE_METHODS:
            origin = headers.get("origin")
            if origin is not None and origin != f"{scope['scheme']}://{host}":
                raise ProblemError(403, f"requests from another site, {origin}, are refused")
        path = scope["path"]
        if token is None or path in OPEN_PATHS or path.startswith(PAGE_PREFIX):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            about = "send `Authorization: Bearer TOKEN` with the token of --admin-token-file"
            raise ProblemError(401, about, headers={"www-authenticate": "Bearer"})

    async def _with_body(self, scope: Scope, headers: RequestHeaders, receive: Receive) -> Receive:
        """Read the whole body, within its limits, and return a function that passes it on."""
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return receive
        limit = self.settings.state_bytes_max if scope["path"] == STATE_FILE else self.settings.body_bytes_max
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18:
            raise ProblemError(400, "Content-Length is not a number")
        if int(length) > limit:
            raise _too_long(limit)
        try:
            async with asyncio.timeout(self.settings.request_timeout_s) as timeout:
                try:
                    body = await _read(receive, limit, partial(self._arrived, timeout))
                finally:
                    self._arriving.pop(timeout, None)
        except TimeoutError:
            about = f"the body did not arrive within {self.settings.request_timeout_s:g} s, or before too many others"
            raise ProblemError(408, about, headers={"connection": "close"}) from None
        if body:
            _check_type(scope["path"], headers.get("content-type", ""))
        handed_on = False

        async def replay() -> Message:
            nonlocal handed_on
            if handed_on:
                return await receive()
            handed_on = True
            return {"type": "http.request", "body": body, "more_body": False}

        return replay

    def _arrived(self, timeout: asyncio.Timeout, size: int) -> None:
        """Keep how much of a body there is, and end the time of the oldest one if all are too long together."""
        self._arriving[timeout] = size
        if len(self._arriving) > 1 and sum(self._arriving.values()) > self._arriving_bytes_max:
            oldest = next(iter(self._arriving))
            del self._arriving[oldest]
            if not oldest.expired():  # its own time may be over in this same iteration
                oldest.reschedule(0)


async def _read(receive: Receive, limit: int, arrived: Callable[[int], None]) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ProblemError(400, "the connection ended before the end of the body")
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_long(limit)
        arrived(len(body))
        if not message.get("more_body", False):
            return bytes(body)


def _too_long(limit: int) -> ProblemError:
    return ProblemError(413, f"the body is longer than {limit} bytes", headers={"connection": "close"})


def _check_type(path: str, content_type: str) -> None:
    wanted = BODY_TYPES.get(path, JSON_TYPES)
    parsed = Headers()
    parsed["content-type"] = content_type
    if parsed.get_content_type() not in wanted:
        raise ProblemError(415, f"send `Content-Type: {wanted[0]}`, not {content_type or 'none'!r}")
