"""Snapshot of a running controller for `mockraft run`: from its image, its log and its journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mockraft.brokers.lifecycle import BrokerState
from mockraft.kafka_api.journal import ClosedConnection, Entry, Exchange
from mockraft.releases import metadata_version
from mockraft.server.running import RunningController
from mockraft.wire import api_keys, error_codes
from mockraft.wire.message import Message
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.uuids import text_of

RATE_WINDOW_MS = 10_000
LINES_MAX = 200


_STATES = {
    BrokerState.STARTING: "starting",
    BrokerState.RECOVERY: "recovery",
    BrokerState.RUNNING: "running",
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: "leaving",
    BrokerState.SHUTTING_DOWN: "left",
}


class BrokerRow(NamedTuple):
    """A registered broker. Ages are ms, None without any heartbeat; `lag` counts records.

    `state` is the state in its heartbeats, or "gone" when they stopped without a controlled shutdown; `clients` is the
    first listener that it advertises, host:port.
    """

    broker_id: int
    state: str
    fenced: bool
    broker_epoch: int
    incarnation: str
    clients: str
    log_dirs: int
    offline_dirs: int
    rack: str
    heartbeat_age_ms: int | None
    heartbeats_per_s: float
    metadata_offset: int | None
    lag: int | None


class Line(NamedTuple):
    """One exchange or refused connection as a person reads it."""

    at_ms: int
    what: str
    who: str
    outcome: str
    took_ms: int
    is_error: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything on the screen at one moment."""

    cluster_id: str
    bootstrap: str
    metadata_version: str
    leader_epoch: int
    high_watermark: int
    up_ms: int
    brokers: list[BrokerRow]
    topics: int
    lines: list[Line]
    rates: dict[str, float]


@dataclass(slots=True)
class _Observed:
    """Facts about one broker from the journal; times in ms."""

    state: BrokerState = BrokerState.STARTING
    offline_dirs: int = 0
    heartbeats_ms: deque[int] = field(default_factory=lambda: deque(maxlen=2000))


class Watch:
    """Listens to the journal of a running controller and gives pictures of it."""

    def __init__(self, running: RunningController) -> None:
        self.running = running
        self.started_ms = running.clock.now_ms()
        self._observed: dict[int, _Observed] = {}
        self._lines: deque[Line] = deque(maxlen=LINES_MAX)
        self._times_ms: dict[int, deque[int]] = {}
        running.node.journal.subscribe(self._seen)

    def picture(self) -> Picture:
        """Return the current picture."""
        now_ms = self.running.clock.now_ms()
        controller = self.running.controller
        level = controller.image.metadata_version
        return Picture(
            cluster_id=self.running.config.cluster_id,
            bootstrap=self.running.bootstrap,
            metadata_version=f"{metadata_version(level).name} ({level})" if level else "none",
            leader_epoch=controller.raft.epoch,
            high_watermark=controller.log.high_watermark,
            up_ms=now_ms - self.started_ms,
            brokers=list(self._rows(now_ms)),
            topics=len(controller.image.topics.by_id),
            lines=list(self._lines),
            rates={api_keys.name(key): self._per_s(times, now_ms) for key, times in sorted(self._times_ms.items())},
        )

    def _per_s(self, times_ms: deque[int], now_ms: int) -> float:
        while times_ms and times_ms[0] < now_ms - RATE_WINDOW_MS:
            times_ms.popleft()
        return len(times_ms) * 1000 / min(RATE_WINDOW_MS, max(1000, now_ms - self.started_ms))

    def _rows(self, now_ms: int) -> Iterator[BrokerRow]:
        controller = self.running.controller
        replicas = controller.raft.observers(now_ms).items()
        # A broker that came back with another directory is there twice for a while: the newest fetch counts.
        newest = {key.id: state for key, state in sorted(replicas, key=lambda item: item[1].last_fetch_timestamp_ms)}
        for broker_id, broker in sorted(controller.image.cluster.brokers.items()):
            observed = self._observed.get(broker_id, _Observed())
            fetched = newest.get(broker_id)
            offset = fetched.log_end_offset if fetched else None
            age_ms = now_ms - observed.heartbeats_ms[-1] if observed.heartbeats_ms else None
            lost = broker.fenced and (age_ms is None or age_ms > self.running.config.session_timeout_ms)
            yield BrokerRow(
                broker_id=broker_id,
                state="gone" if lost and observed.state is not BrokerState.SHUTTING_DOWN else _STATES[observed.state],
                fenced=broker.fenced,
                broker_epoch=broker.broker_epoch,
                incarnation=text_of(broker.incarnation_id),
                clients=next((f"{each.host}:{each.port}" for each in broker.endpoints), "-"),
                log_dirs=len(broker.log_dirs),
                offline_dirs=observed.offline_dirs,
                rack=broker.rack or "",
                heartbeat_age_ms=age_ms,
                heartbeats_per_s=self._per_s(observed.heartbeats_ms, now_ms),
                metadata_offset=offset,
                lag=None if offset is None else max(0, controller.log.end_offset - offset),
            )

    def _seen(self, entry: Entry) -> None:
        if isinstance(entry, ClosedConnection):
            if entry.refused:
                self._lines.append(
                    Line(entry.closed_ms, "connection refused", entry.peer_address, entry.reason, 0, True)
                )
            return
        if not isinstance(entry, Exchange):
            return
        self._times_ms.setdefault(entry.api_key, deque(maxlen=20_000)).append(entry.answered_ms)
        request, error_code = entry.request, entry.error_code
        if error_code is None:
            self._lines.append(
                Line(entry.answered_ms, _what(entry), _who(entry, request), entry.reason or "no answer", 0, True)
            )
            return
        response = entry.response
        if entry.api_key == api_keys.BROKER_HEARTBEAT:
            self._heartbeat(entry)
        if entry.api_key == api_keys.FETCH and error_code == error_codes.NONE:
            # Every broker asks twice a second: a rate says all there is to say.
            return
        self._lines.append(
            Line(
                entry.answered_ms,
                _what(entry),
                _who(entry, request),
                error_codes.name(error_code) if error_code else _answer(response),
                entry.answered_ms - entry.received_ms,
                error_code != error_codes.NONE,
            )
        )

    def _heartbeat(self, entry: Exchange[BrokerHeartbeatRequest, BrokerHeartbeatResponse]) -> None:
        request, response = entry.request, entry.response
        if response.error_code != error_codes.NONE:
            return
        observed = self._observed.setdefault(request.broker_id, _Observed())
        observed.heartbeats_ms.append(entry.answered_ms)
        observed.offline_dirs = len(request.offline_log_dirs)
        if response.should_shut_down:
            observed.state = BrokerState.SHUTTING_DOWN
        elif request.want_shut_down:
            observed.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        elif not response.is_fenced:
            observed.state = BrokerState.RUNNING
        else:
            observed.state = BrokerState.RECOVERY if response.is_caught_up else BrokerState.STARTING


def _what(entry: Exchange) -> str:
    return f"{api_keys.name(entry.api_key)} v{entry.api_version}"


def _who(entry: Exchange, request: Message) -> str:
    if entry.envelope is not None:
        return f"{entry.client_id or 'a client'} via broker {entry.broker_id}"
    broker_id = getattr(request, "broker_id", None)
    if broker_id is not None and broker_id >= 0:
        return f"broker {broker_id}"
    client_id = entry.client_id or ""
    if client_id.startswith("raft-client-"):
        return f"broker {client_id.removeprefix('raft-client-')}"
    return f"broker {client_id}" if client_id.isdigit() else client_id or "-"


def _answer(response: Any) -> str:
    """Return a short description of a successful response."""
    if response is None:
        return "ok"
    if response.api_key == api_keys.BROKER_REGISTRATION:
        return f"broker epoch {response.broker_epoch}"
    if response.api_key != api_keys.BROKER_HEARTBEAT:
        return "ok"
    if response.should_shut_down:
        return "may shut down"
    if not response.is_fenced:
        return "unfenced"
    return "fenced, caught up" if response.is_caught_up else "fenced, not caught up"
