"""Send a capture's requests to a live controller, and compare its answers with the captured ones.

Each captured connection has a live one. See `replay_plan` for the order, `bindings` for ids and epochs, `log_readers`
for offsets, `captured_log` for topics and what was drawn by chance. In a request of Envelope, and in its answer,
the forwarded one is bound and compared as well.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from mockraft.spark_replay.bindings import CLUSTER_ID, Bindings
from mockraft.spark_replay.captured_log import CapturedLog
from mockraft.spark_replay.compare import Difference, compare
from mockraft.spark_replay.exchanges import Exchange
from mockraft.spark_replay.log_readers import LogReaders
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.replay_plan import Plan, Step, plan
from mockraft.spark_replay.tcp_streams import Connection
from mockraft.wire import api_keys, messages, record_batch
from mockraft.wire.client import DisconnectedError, KafkaConnection, connect
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import parse_request, read_response, write_request
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

ANSWER_TIMEOUT_MS = 10_000
FETCH_WAIT_MS = 500
READINGS_MAX = 6
_CONTROLLERS = 2
_NO_OP = bytes.fromhex("01140000")


class Outcome(NamedTuple):
    """What came of one step: the places where the answers differ, or why there is none (`failure`)."""

    step: Step
    latency_ns: int
    differences: list[Difference]
    failure: str | None

    @property
    def api(self) -> str:
        """Name of the API."""
        return api_keys.name(self.step.request.api_key)

    @property
    def is_same(self) -> bool:
        """Whether the answer is the captured one, ids and epochs aside."""
        return self.failure is None and not self.differences


class Replayed(NamedTuple):
    """All outcomes in the order of sending, what was left out, and the pairs that were learnt."""

    outcomes: list[Outcome]
    plan: Plan
    bindings: Bindings


async def replay(
    exchanges: Iterable[Exchange],
    host: str,
    port: int,
    *,
    speed: float | None = None,
    kept: Filter | None = None,
    ignored: Collection[str] = (),
    security: ClientSecurity | None = None,
    answer_timeout_ms: int = ANSWER_TIMEOUT_MS,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> Replayed:
    """Replay on the controller at host and port.

    Args:
        exchanges: of one cluster, as `read_exchanges` gives them.
        host: where the controller listens.
        port: its port.
        speed: 1 for the capture's pace, 10 for ten times that, None for as fast as the order allows.
        kept: which APIs are sent.
        ignored: names of fields, or `Api:field`, that are not compared.
        security: how to log in.
        answer_timeout_ms: how long to wait for an answer beyond what the request itself allows.
        on_outcome: told of each exchange when it is over.

    Raises:
        DisconnectedError: nobody answers at host and port.
    """
    to_send = plan(exchanges, kept)
    run = _Run(to_send, host, port, speed, frozenset(ignored), security, answer_timeout_ms, on_outcome)
    await run.begin()
    try:
        for index, step in enumerate(to_send.steps):
            await run.send(index, step)
        await run.all_answered(len(to_send.steps))
    finally:
        await run.end()
    return Replayed([outcome for outcome in run.outcomes if outcome is not None], to_send, run.bindings)


class _Run:
    """A replay that is under way."""

    def __init__(
        self,
        to_send: Plan,
        host: str,
        port: int,
        speed: float | None,
        ignored: frozenset[str],
        security: ClientSecurity | None,
        answer_timeout_ms: int,
        on_outcome: Callable[[Outcome], None],
    ) -> None:
        self.steps = to_send.steps
        self.host = host
        self.port = port
        self.speed = speed
        self.ignored = ignored
        self.security = security
        self.answer_timeout_ms = answer_timeout_ms
        self.on_outcome = on_outcome
        self.bindings = Bindings()
        self.readers = LogReaders(self.bindings)
        self.log = CapturedLog((step.request.api_key, step.response) for step in self.steps)
        self.outcomes: list[Outcome | None] = [None] * len(self.steps)
        self._connections: dict[Connection, KafkaConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Answers in the capture's order: how many from its start on are there, and who waits for how many.
        self._answered = bytearray(len(self.steps))
        self._prefix = 0
        self._progress = asyncio.Event()
        self._topics_to_come = self.log.topic_ids
        self._last_fetch: tuple[Any, int] | None = None
        self._broken: BaseException | None = None
        # Where the stretch of time that keeps the capture's pace begins, captured and on the loop's clock.
        self._paced_from: tuple[int, float] = (-1, 0.0)
        self._began_s = 0.0

    async def begin(self) -> None:
        """Ask who is there: the live cluster id is not in every answer that needs it."""
        connection = await connect(
            self.host, self.port, security=self.security, request_timeout_ms=self.answer_timeout_ms
        )
        try:
            cluster = await connection.send(DescribeClusterRequest(endpoint_type=_CONTROLLERS))
        finally:
            await connection.close()
        told = Counter(getattr(step.body, "cluster_id", None) or "" for step in self.steps)
        del told[""]
        if told:
            # What most requests say is the capture's cluster; a wrong id stays wrong.
            self.bindings.learn(CLUSTER_ID, told.most_common(1)[0][0], cluster.cluster_id)
        self._began_s = asyncio.get_running_loop().time()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._connections.values():
            await connection.close()

    async def all_answered(self, count: int) -> None:
        """Wait until the first `count` answers, in the capture's order of answers, are there."""
        while self._prefix < count:
            if self._broken is not None:
                raise self._broken
            self._progress.clear()
            await self._progress.wait()

    async def send(self, index: int, step: Step) -> None:
        """Send one request when its time has come."""
        await self.all_answered(step.answers_before)
        loop = asyncio.get_running_loop()
        if (due_s := self._due_s(step, loop.time())) is not None:
            await asyncio.sleep(max(0.0, due_s - loop.time()))
        try:
            request = self._bound(step)
            for _ in range(READINGS_MAX):
                if not self.bindings.missing & self._topics_to_come:
                    break
                await self._read_on()
                request = self._bound(step)
            # What has not come by now never will: the live controller refused to create it.
            self._topics_to_come -= self.bindings.missing
            connection = await self._connection(step)
        except (WireError, DisconnectedError) as error:
            self._over(index, Outcome(step, 0, [], str(error)))
            return
        task = loop.create_task(self._exchange(index, step, request, connection))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        # The task writes before anything else is sent.
        await asyncio.sleep(0)

    async def _read_on(self) -> None:
        """Let the reader that fetched last fetch once more: a request speaks of a topic that it has not read of yet."""
        if self._last_fetch is None:
            return
        request, version = self._last_fetch
        self.readers.bind_fetch(request)
        request.max_wait_ms = FETCH_WAIT_MS
        connection = await connect(self.host, self.port, handshake=False, security=self.security)
        try:
            answer = await connection.send(request, version=version, timeout_ms=self.answer_timeout_ms)
        finally:
            await connection.close()
        self.readers.read(request, answer)
        self.log.learn_topics(answer, self.bindings)

    def _due_s(self, step: Step, now_s: float) -> float | None:
        """When to send this, on the loop's clock; None for at once."""
        if self.speed is not None:
            return self._began_s + (step.sent_ns - self.steps[0].sent_ns) / 1e9 / self.speed
        if step.paced is None:
            return None
        start_ns, passed_ns = step.paced
        if self._paced_from[0] != start_ns:
            self._paced_from = start_ns, now_s
        return self._paced_from[1] + passed_ns / 1e9

    async def _connection(self, step: Step) -> KafkaConnection:
        connection = self._connections.get(step.connection)
        if connection is None or not connection.is_open:
            connection = self._connections[step.connection] = await connect(
                self.host,
                self.port,
                client_id=step.request.client_id,
                handshake=False,
                security=self.security,
            )
        connection.client_id = step.request.client_id
        return connection

    async def _exchange(self, index: int, step: Step, request: Any, connection: KafkaConnection) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        wait_ms = self.answer_timeout_ms + getattr(request, "max_wait_ms", 0)
        try:
            answer = await connection.send(request, version=step.request.api_version, timeout_ms=wait_ms)
        except (DisconnectedError, WireError) as error:
            self._over(index, Outcome(step, 0, [], str(error)))
            return
        latency_ns = round((loop.time() - began_s) * 1e9)
        self._over(index, Outcome(step, latency_ns, self._differences(step, request, answer), None))
        if step.is_last:
            await connection.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (broken := task.exception()) is not None:
            self._broken = broken
            self._progress.set()

    def _over(self, index: int, outcome: Outcome) -> None:
        self.outcomes[index] = outcome
        self.on_outcome(outcome)
        self._answered[outcome.step.rank] = 1
        while self._prefix < len(self._answered) and self._answered[self._prefix]:
            self._prefix += 1
        self._progress.set()

    def _bound(self, step: Step) -> Any:
        """The request with live ids and epochs."""
        key, version = step.request.api_key, step.request.api_version
        body = step.body
        self.bindings.missing.clear()
        if key == api_keys.ENVELOPE:
            body.request_data = self._bound_inner(bytes(body.request_data), bytes(step.response.response_data or b""))
            return body
        bound: Any = from_json(messages.request(key), self.bindings.bind(to_json(body, version), key), version)
        if key == api_keys.CREATE_TOPICS:
            self.log.put_replicas(bound, step.response)
        if key == api_keys.FETCH:
            self.readers.bind_fetch(bound)
            self._last_fetch = bound, version
            if self.speed is None and not _has_news(step.response):
                bound.max_wait_ms = 0
        elif key == api_keys.BROKER_HEARTBEAT:
            self.readers.bind_heartbeat(bound, body.broker_epoch)
        return bound

    def _bound_inner(self, data: bytes, captured: bytes) -> bytes:
        header = parse_request(data)
        body = messages.request(header.api_key).read(data[header.body_offset :], header.api_version)
        tree = self.bindings.bind(to_json(body, header.api_version), header.api_key)
        bound = from_json(messages.request(header.api_key), tree, header.api_version)
        if header.api_key == api_keys.CREATE_TOPICS and captured:
            self.log.put_replicas(bound, read_response(captured, header.api_key, header.api_version))
        return write_request(bound, header.api_version, header.correlation_id, header.client_id)[4:]

    def _differences(self, step: Step, request: Any, answer: Any) -> list[Difference]:
        key = step.request.api_key
        captured = step.response
        if key == api_keys.FETCH:
            self.readers.answered(request, captured, answer)
            self.log.learn_topics(answer, self.bindings)
        found = self._compared(key, step.request.api_version, captured, answer)
        if key == api_keys.ENVELOPE and captured.response_data and answer.response_data:
            header = parse_request(bytes(step.body.request_data))
            inner = [
                read_response(bytes(each.response_data), header.api_key, header.api_version)
                for each in (captured, answer)
            ]
            more = self._compared(header.api_key, header.api_version, *inner)
            name = api_keys.name(header.api_key)
            found = [each for each in found if each.path != "responseData"]
            found += [each._replace(path=f"{name}.{each.path}") for each in more]
        return found

    def _compared(self, key: int, version: int, captured: Any, live: Any) -> list[Difference]:
        name = api_keys.name(key)
        found = compare(to_json(captured, version), to_json(live, version), key, self.bindings)
        return [
            each
            for each in found
            if not {each.path.rpartition(".")[2].partition("[")[0], f"{name}:{each.path}"} & self.ignored
        ]


def _has_news(response: Any) -> bool:
    """Whether the answer to a Fetch brought anything but NoOpRecords, so that it may have been waited for."""
    for partition in (partition for topic in response.responses for partition in topic.partitions):
        try:
            batches = list(record_batch.read_batches(bytes(partition.records or b""), allow_partial_tail=True))
        except WireError:
            return True
        if any(value != _NO_OP for batch in batches for _, value in batch.records):
            return True
    return False
