"""The clients of one broker without sockets: connections and parked requests (Kafka's SocketServer and purgatories).

Parked requests are retried after `changed` was called, each at its deadline too.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from mockraft.brokers.apis.api import (
    AnyApi,
    ApiError,
    BrokerView,
    ConnectionClosedError,
    Parked,
    RequestContext,
    parked,
)
from mockraft.brokers.image import ClusterImage
from mockraft.kafka_api.api import Client, failure_text
from mockraft.kafka_api.authentication.credentials import TokenCredential
from mockraft.kafka_api.authentication.listener_logins import logins_of
from mockraft.kafka_api.connections import PendingRequest, Result
from mockraft.kafka_api.effects import Effect
from mockraft.kafka_api.journal import ClosedConnection, Entry, Journal
from mockraft.kafka_api.listener import Listener, Observed, Parts
from mockraft.wire import api_keys
from mockraft.wire.connection import FRAME_BYTES_MAX, Request
from mockraft.wire.message import Message
from mockraft.wire.scram import NUMBERS, ScramCredential

CLOSINGS_KEPT = 63
INT_MAX = 2**31 - 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a client listener by their names in server.properties; idle time -1: unlimited.

    The properties have the names of `mockraft.kafka_api`; what Kafka's brokers do not limit is unlimited.
    """

    socket_request_max_bytes: int = FRAME_BYTES_MAX
    max_connections: int = INT_MAX
    connections_max_idle_ms: int = 600_000
    connection_failed_authentication_delay_ms: int = 100
    sasl_server_max_receive_size: int = 524_288

    received_bytes_max = 1 << 62
    unauthenticated_connections_max = write_bytes_max = write_stuck_ms = INT_MAX
    authentication_timeout_ms = INT_MAX

    @property
    def frame_bytes_max(self) -> int:
        """Maximum size of a request."""
        return self.socket_request_max_bytes

    @property
    def connections_max(self) -> int:
        """Maximum number of connections."""
        return self.max_connections

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Limits:
        """Read the limits from server.properties."""
        named = {field.name: properties.get(field.name.replace("_", ".")) for field in fields(cls)}
        return cls(**{field: int(text) for field, text in named.items() if text is not None})


class Credentials:
    """The users of a broker's image at each login; a broker without a secret key knows no delegation tokens."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential."""
        return self._image.scram.get(user, {}).get(NUMBERS[mechanism])

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """Return None."""
        return None


class Clients(Listener[AnyApi, RequestContext]):
    """The connections by id. `closings` are the last reasons for which this side closed one.

    `observed` is the test's. `wake` is called when `next_tick_ms` has become earlier without a call of another method.
    """

    def __init__(
        self, broker: BrokerView, limits: Limits, wake: Callable[[], None], observed: Observed | None = None
    ) -> None:
        observed = observed or Observed(Journal(0, 0, node_id=broker.config.broker_id))
        journal, listener = observed.journal, broker.config.listeners[0]
        journal.address = (listener.host, listener.port)
        security = broker.config.listener_security
        logins = logins_of(security, limits, broker.apis, Credentials(broker.image), random.SystemRandom())
        super().__init__(Parts("", broker.apis, limits, journal, logins, security, lambda: observed.scripts(self)))
        self.closings: list[str] = []
        self._broker = broker
        self._wake = wake
        self._changes = 0
        self._is_awake = False
        journal.subscribe(self._closed, every_exchange=False)

    def changed(self) -> None:
        """Let parked requests be retried: something that they may wait for has changed."""
        self._changes += 1
        if not self._is_awake and self._parked:
            self._is_awake = True
            self._wake()

    def position(self) -> int:
        """Return the number of changes."""
        return self._changes

    def elsewhere(self, api_key: int) -> str:
        """Return where the controller is."""
        controllers = ",".join(f"{host}:{port}" for host, port in self._broker.config.bootstrap)
        return f"; this is a simulated broker, and its controller is at {controllers}"

    def context(self, header: Request, client: Client, now_ms: int) -> RequestContext:
        """Return the context of a request."""
        return RequestContext(header, client, now_ms, self._broker)

    def answer(self, request: PendingRequest[AnyApi, RequestContext]) -> Result:
        """Call the request's handler, at once or when a slow disk is ready."""
        api, body, ctx = request.api, request.body, request.ctx

        def handle(now_ms: int) -> Result:
            ctx.now_ms = now_ms
            result = self._result(request, lambda: api.answer(body, ctx))
            assert result is not None, "a handler answers or parks"
            return result

        delay_ms = self._broker.replicas.disk_delay_ms(api.replicas(body, ctx)) if api.replicas is not None else 0
        if delay_ms <= 0:
            return handle(ctx.now_ms)
        return parked(ctx.now_ms + int(delay_ms), lambda now_ms, expired: handle(now_ms) if expired else None)

    def broken(self, request: PendingRequest[AnyApi, RequestContext]) -> Message:
        """Return UNKNOWN_SERVER_ERROR: an unexpected exception is a defect of this program."""
        request.ctx.failure = failure_text()
        _log.exception("broker %d: %s broke", self._broker.config.broker_id, api_keys.name(request.api.api_key))
        response: Message = request.api.unknown_server_error(request.body)
        return response

    def tick(self, now_ms: int) -> list[Effect]:
        """Run what is due: groups, locks of records and parked requests."""
        self._is_awake = False
        self._broker.groups.groups.tick(now_ms)
        self._broker.shares.tick(now_ms)
        return super().tick(now_ms)

    def next_tick_ms(self, now_ms: int) -> int:
        """Return the time at which `tick` must be called."""
        if self._is_awake:
            return 0
        broker = self._broker
        return min(broker.groups.groups.next_tick_ms(), broker.shares.next_tick_ms(), super().next_tick_ms(now_ms))

    def _result(
        self, request: PendingRequest[AnyApi, RequestContext], call: Callable[[], Result | None]
    ) -> Result | None:
        """Return the result of a handler, or of a retry; None if it stays parked."""
        try:
            result = call()
        except ApiError as refusal:
            refused: Message = request.api.error(request.body, refusal.error_code, refusal.message)
            return refused
        except ConnectionClosedError:
            raise
        except Exception:
            return self.broken(request)
        if not isinstance(result, Parked):
            return result
        waiting = result

        def retry(now_ms: int, expired: bool) -> Result | None:
            return self._result(request, lambda: waiting.retry(now_ms, expired))

        return parked(waiting.deadline_ms, retry)

    def _closed(self, entry: Entry) -> None:
        """End the share sessions of a connection, and keep the reason for which this side closed it."""
        if not isinstance(entry, ClosedConnection):
            return
        self._broker.shares.disconnected(entry.connection_id)
        if entry.refused:
            self.closings = [*self.closings[-CLOSINGS_KEPT:], entry.reason]
