"""Encode response messages and write their journal entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockraft.kafka_api.journal import Exchange, Journal, without_secrets
from mockraft.server.apis.api import AnyApi, RequestContext, broken
from mockraft.server.connection_state import Connection
from mockraft.server.effects import Effect, Send
from mockraft.wire import api_keys
from mockraft.wire.connection import Request, write_response

if TYPE_CHECKING:
    from mockraft.wire.message import Message, MessageLookup


class Responses:
    """Sends a node's responses and writes its journal; `messages` has the classes and header versions.

    `now_us`, if set, measures how long answers take; else that is as precise as `now_ms`.
    """

    def __init__(self, journal: Journal, messages: MessageLookup) -> None:
        self.journal = journal
        self._messages = messages
        self.now_us: Callable[[], int] | None = None

    def send(
        self,
        connection: Connection,
        api: AnyApi,
        request: Request,
        body: Message,
        ctx: RequestContext,
        response: Message,
        now_ms: int,
        effects: list[Effect],
    ) -> int:
        """Send a response; return its size in bytes."""
        data, version = self.written(api, request, body, ctx, response)
        effects.append(Send(connection.connection_id, data))
        self.note(connection, request, ctx, now_ms, data, version, api.served_by)
        return len(data)

    def written(
        self, api: AnyApi, request: Request, body: Message, ctx: RequestContext, response: Message
    ) -> tuple[bytes, int]:
        """Return a response's frame and the version it is written in."""
        version = answered_version(api, request.api_version)
        try:
            body_bytes = response.write(version)
        except Exception:
            body_bytes = broken(api, body, ctx).write(version)
        header_version = self._messages.response_header_version(request.api_key, version)
        return write_response(body_bytes, request.correlation_id, header_version), version

    def note(
        self,
        connection: Connection,
        request: Request,
        ctx: RequestContext,
        now_ms: int,
        data: bytes,
        version: int,
        served_by: str,
        received_ms: int | None = None,
        matched: str | None = None,
        unmatched: bool = False,
        reason: str | None = None,
    ) -> Exchange:
        """Write an exchange to the journal; `data` is everything that was sent, empty for nothing."""
        if request.api_key == api_keys.SASL_AUTHENTICATE:
            request = without_secrets(request)
        received_ms = ctx.now_ms if received_ms is None else received_ms
        if self.now_us is None or ctx.received_us is None:
            took_us = 1_000 * (now_ms - received_ms)
        else:
            took_us = self.now_us() - ctx.received_us
        exchange = Exchange(
            connection.connection_id,
            received_ms,
            now_ms,
            request,
            request.frame,
            data,
            version,
            served_by,
            ctx.failure,
            self._messages,
            ctx.principal,
            connection.broker_id,
            matched,
            unmatched,
            reason,
            connection.peer_address,
            took_us,
        )
        self.journal.add_exchange(exchange)
        return exchange


def answered_version(api: AnyApi, api_version: int) -> int:
    """Return a response's version: an unknown ApiVersions version is answered in 0 (RequestContext.apiVersion)."""
    return api_version if 0 <= api_version <= api.max_version else 0
