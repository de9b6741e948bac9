"""Send a capture's requests to a live controller, and compare its responses with the captured ones.

Each captured connection has a live one. In an Envelope request and its response, the forwarded message is translated
and compared as well.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import NamedTuple

from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.regression.captured import Captured, read_frame
from mockraft.spark_replay.regression.classes import CLUSTER_ID
from mockraft.spark_replay.regression.diff import VOLATILE_OK, Difference
from mockraft.spark_replay.regression.remote_clock import TICK_S, RemoteClock
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.spark_replay.regression.requests import Translation
from mockraft.spark_replay.regression.rules import Rules
from mockraft.spark_replay.regression.send_order import CAUSAL, ORDERS, RequestToSend, Survey, steps, survey
from mockraft.wire import api_keys
from mockraft.wire.client import DisconnectedError, KafkaConnection, RequestTimedOutError, connect
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import CONTROLLER_ENDPOINTS
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

ANSWER_TIMEOUT_MS = 10_000
FETCH_WAIT_MS = 500
READINGS_MAX = 6
STEPS_AHEAD_MAX = 256
"""Maximum number of steps read and not answered yet: the part of a session held in memory."""

OK, TIMEOUT, CLOSED, ERROR, LEFT_OUT = "ok", "timeout", "closed", "error", "left_out"


class ExchangeResult(NamedTuple):
    """The result of one exchange: its differences, or why there is no response (`failure`).

    `status` is ok, timeout, closed, error or left_out; `excused` are the differences excused by rules; times are
    nanoseconds since 1970; `response` is the live frame without its length.
    """

    captured: Captured
    status: str
    failure: str | None
    differences: Sequence[Difference]
    excused: Sequence[Difference] = ()
    sent_ns: int = 0
    received_ns: int = 0
    response: bytes | None = None

    @property
    def api(self) -> str:
        """Name of the API."""
        return self.captured.api

    @property
    def latency_ns(self) -> int:
        """Latency of the live response."""
        return self.received_ns - self.sent_ns

    @property
    def is_same(self) -> bool:
        """True if the response equals the captured one, apart from ids and epochs."""
        return self.status == OK and not self.differences


class Replayed(NamedTuple):
    """All outcomes in the order of their responses, what was left out by (API, reason), and the pairs learnt."""

    outcomes: list[ExchangeResult]
    left_out: Counter[tuple[str, str]]
    renaming: Renaming


class Options(NamedTuple):
    """Options of a replay.

    Args:
        order: causal or paced.
        speed: with paced, 1 for the capture's pace, 10 for ten times that.
        rules: how each field is compared.
        kept: which APIs are sent.
        ignored: names of fields, or `Api:field`, that are not compared.
        security: TLS and SASL settings of the connections.
        answer_timeout_ms: how long to wait for a response beyond the request's own timeout.
        show_secrets: if False, differences have `[hidden]`, and responses asterisks, in place of secrets.
    """

    order: str = CAUSAL
    speed: float = 1.0
    rules: Rules | None = None
    kept: Filter | None = None
    ignored: Collection[str] = ()
    security: ClientSecurity | None = None
    answer_timeout_ms: int = ANSWER_TIMEOUT_MS
    show_secrets: bool = False


class Live(NamedTuple):
    """The controller to replay to.

    `admin` is the URL of its admin API, to skip with its virtual clock the time that a broker is away.
    """

    host: str
    port: int
    admin: str | None = None


async def replay(
    exchanges: Iterable[Captured],
    host: str,
    port: int,
    options: Options | None = None,
    *,
    on_outcome: Callable[[ExchangeResult], None] = lambda _: None,
    admin: str | None = None,
) -> Replayed:
    """Replay a capture of one cluster to the controller at host and port; calls `on_outcome` for every exchange.

    `admin` is as in `Live`. Raises DisconnectedError if nothing listens there.
    """
    captured = list(exchanges)
    outcomes: list[ExchangeResult] = []
    left_out: Counter[tuple[str, str]] = Counter()

    def keep(outcome: ExchangeResult) -> None:
        if outcome.status == LEFT_OUT:
            left_out[outcome.api, str(outcome.failure)] += 1
        else:
            outcomes.append(outcome)
        on_outcome(outcome)

    renaming = await replay_steps(lambda: captured, Live(host, port, admin), options or Options(), keep)
    return Replayed(outcomes, left_out, renaming)


async def replay_steps(
    source: Callable[[], Iterable[Captured]],
    live: Live,
    options: Options,
    on_outcome: Callable[[ExchangeResult], None],
    known: Survey | None = None,
) -> Renaming:
    """Replay a session of any length: every call of `source` iterates over it from the start.

    Raises DisconnectedError if nothing listens at host and port or the clock cannot be moved, and ValueError for an
    unknown order.
    """
    if options.order not in ORDERS:
        raise ValueError(f"there is no order {options.order!r}; there are {', '.join(ORDERS)}")
    known = known or survey(source(), options.kept)
    run = _Run(known, live, options, on_outcome)
    await run.begin()
    try:
        for step in steps(source(), known):
            if isinstance(step, RequestToSend):
                await run.take(step)
            else:
                on_outcome(ExchangeResult(step[0], LEFT_OUT, step[1], ()))
        await run.all_over()
    finally:
        await run.end()
    return run.translation.renaming


class _Run:
    """The state of a running replay."""

    def __init__(
        self, known: Survey, live: Live, options: Options, on_outcome: Callable[[ExchangeResult], None]
    ) -> None:
        self.known = known
        self.host, self.port, admin = live
        self.options = options
        self.speed = options.speed if options.order != CAUSAL else None
        self.on_outcome = on_outcome
        self.translation = Translation(options.rules or Rules(), known, show_secrets=options.show_secrets)
        self._connections: dict[tuple[int, int], KafkaConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Unfinished steps by number: time of the captured response, and a future set when the live one has come.
        self._open: dict[int, tuple[int, asyncio.Future[None]]] = {}
        self._topics_to_come = known.log.topic_ids
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Start of each stretch replayed at the capture's pace: captured time, and event loop time.
        self._paced_from: dict[int, float] = {}
        self._began_s = 0.0
        self._clock = None if admin is None else RemoteClock(admin)

    async def begin(self) -> None:
        """Request the live cluster id, since not every response that needs it contains it."""
        if self._clock is not None:
            await self._clock.skip_to(self._clock.now_s() + TICK_S)  # fails at once if it is not there, or not virtual
            self._start(self._clock.run())
        connection = KafkaConnection(None, self.options.answer_timeout_ms)
        await connection.open(self.host, self.port, security=self.options.security)
        try:
            cluster = await connection.send(DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS))
        finally:
            await connection.close()
        if self.known.cluster_id is not None:
            self.translation.renaming.learn(CLUSTER_ID, self.known.cluster_id, cluster.cluster_id)
        self._began_s = asyncio.get_running_loop().time()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._broken.cancel()
        for connection in self._connections.values():
            await connection.close()

    async def take(self, step: RequestToSend) -> None:
        """Send one request when it is due."""
        while len(self._open) >= STEPS_AHEAD_MAX:
            await self._wait_for([next(iter(self._open.values()))[1]])
        sent_ns = step.captured.request_ts_ns
        earlier = [over for answered_ns, over in self._open.values() if answered_ns < sent_ns]
        self._open[step.captured.number] = step.captured.answered_ns, asyncio.get_running_loop().create_future()
        await self._wait_for(earlier)
        await self._send(step)

    async def all_over(self) -> None:
        """Wait until every request has a response or has failed."""
        while self._open:
            await self._wait_for([over for _, over in self._open.values()])

    async def _wait_for(self, futures: list[asyncio.Future[None]]) -> None:
        """Wait until all of these are done, or the replay has failed."""
        left: set[asyncio.Future[None]] = {each for each in futures if not each.done()}
        while left:
            done, _ = await asyncio.wait({*left, self._broken}, return_when=asyncio.FIRST_COMPLETED)
            if self._broken in done:
                self._broken.result()
            left -= done

    async def _send(self, step: RequestToSend) -> None:
        translation = self.translation
        try:
            await self._wait_until_due(step)
            request = translation.request(step, may_wait=self.speed is not None)
            for _ in range(READINGS_MAX):
                if not translation.renaming.missing & self._topics_to_come:
                    break
                await self._read_on()
                request = translation.request(step, may_wait=self.speed is not None)
            # Ids still missing will never come: the live controller refused to create them.
            self._topics_to_come -= translation.renaming.missing
            connection = await self._connection(step)
        except (WireError, DisconnectedError) as error:
            self._over(_failed(step.captured, error, 0))
            return
        self._start(self._exchange(step, request, connection))
        # Let the task write its request before anything else is sent.
        await asyncio.sleep(0)

    async def _wait_until_due(self, step: RequestToSend) -> None:
        now_s = asyncio.get_running_loop().time() if self._clock is None else self._clock.now_s()
        if (due_s := self._due_s(step, now_s)) is None:
            return
        if self._clock is None:
            await asyncio.sleep(max(0.0, due_s - now_s))
        else:
            await self._clock.skip_to(due_s)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _read_on(self) -> None:
        """Let the reader that fetched last fetch once more: a request names a topic that it has not read yet."""
        translation = self.translation
        if translation.last_fetch is None:
            return
        request, version = translation.last_fetch
        translation.readers.bind_fetch(request)
        request.max_wait_ms = FETCH_WAIT_MS
        connection = await connect(self.host, self.port, handshake=False, security=self.options.security)
        try:
            answer = await connection.send(request, version=version, timeout_ms=self.options.answer_timeout_ms)
        finally:
            await connection.close()
        translation.readers.read(request, answer)
        translation.log.learn_topics(answer, translation.renaming)

    def _due_s(self, step: RequestToSend, now_s: float) -> float | None:
        """Return the event loop time at which to send this; None for immediately."""
        if self.speed is not None:
            return self._began_s + (step.captured.request_ts_ns - self.known.first_ns) / 1e9 / self.speed
        if step.paced is None:
            return None
        start_ns, passed_ns = step.paced
        return self._paced_from.setdefault(start_ns, now_s) + passed_ns / 1e9

    async def _connection(self, step: RequestToSend) -> KafkaConnection:
        key = step.captured.connection
        connection = self._connections.get(key)
        if connection is None or not connection.is_open:
            connection = self._connections[key] = await connect(
                self.host, self.port, client_id=step.request.client_id, handshake=False, security=self.options.security
            )
        connection.client_id = step.request.client_id
        return connection

    async def _exchange(self, step: RequestToSend, request: Message, connection: KafkaConnection) -> None:
        key, version = step.request.api_key, step.request.api_version
        wait_ms = self.options.answer_timeout_ms + getattr(request, "max_wait_ms", 0)
        sent_ns = time.time_ns()
        frame: bytes | None = None
        try:
            frame = await connection.send_for_frame(
                request, version=version, correlation_id=step.request.correlation_id, timeout_ms=wait_ms
            )
            received_ns = time.time_ns()
            found = self.translation.differences(step, request, read_frame(frame, key, version))
        except (DisconnectedError, WireError) as error:
            self._over(_failed(step.captured, error, sent_ns, frame))
            return
        excused = [each for each in found if each.kind == VOLATILE_OK]
        different = [each for each in found if each.kind != VOLATILE_OK and not self._is_ignored(key, each.path)]
        self._over(ExchangeResult(step.captured, OK, None, different, excused, sent_ns, received_ns, frame))
        if step.is_last:
            await connection.close()
            self._connections.pop(step.captured.connection, None)

    def _is_ignored(self, api_key: int, path: str) -> bool:
        names = {path.rpartition(".")[2].partition("[")[0], f"{api_keys.name(api_key)}:{path}"}
        return not names.isdisjoint(self.options.ignored)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (broken := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(broken)

    def _over(self, outcome: ExchangeResult) -> None:
        _, over = self._open.pop(outcome.captured.number)
        over.set_result(None)
        self.on_outcome(outcome)


def _failed(captured: Captured, error: Exception, sent_ns: int, frame: bytes | None = None) -> ExchangeResult:
    kind = TIMEOUT if isinstance(error, RequestTimedOutError) else CLOSED
    status = ERROR if isinstance(error, WireError) else kind
    return ExchangeResult(captured, status, str(error), (), (), sent_ns, time.time_ns() if sent_ns else 0, frame)
