"""A capture's exchanges as what has to be sent, and when each may be: the order that the capture proves.

Requests are sent in the order in which they were captured, and none before the answers came that had come when it was
sent then: a request may follow from any of those. What ran side by side (a Fetch that waits for records, heartbeats of
other brokers) runs side by side again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from mockraft.spark_replay.exchanges import Exchange
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.tcp_streams import Connection
from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request, parse_request, read_response_body
from mockraft.wire.errors import WireError
from mockraft.wire.messages.response_header import ResponseHeader

NOT_SENT = {
    api_keys.VOTE: "between controllers",
    api_keys.BEGIN_QUORUM_EPOCH: "between controllers",
    api_keys.END_QUORUM_EPOCH: "between controllers",
    api_keys.CONTROLLER_REGISTRATION: "between controllers",
    api_keys.SASL_HANDSHAKE: "log in with --command-config",
    api_keys.SASL_AUTHENTICATE: "log in with --command-config",
}
"""APIs that are left out, and why."""

ABSENCE_NS_MAX = 10_000_000_000
"""A little more than Kafka's default broker.session.timeout.ms: an absence that is longer need not be longer here."""


class Step(NamedTuple):
    """One request to send.

    `number` counts the capture's exchanges from 1; `answers_before` is how many of the plan's answers must be there
    first; `rank` is this one's own place among the answers; times are the capture's. `paced` is when a broker went away
    and how long ago that is, in ns: even at full speed so much time has to pass, so that its session ends here as well.
    """

    number: int
    connection: Connection
    request: Request
    body: Any
    response: Any
    sent_ns: int
    answered_ns: int
    answers_before: int
    rank: int
    is_last: bool
    paced: tuple[int, int] | None


class Plan(NamedTuple):
    """The steps in the order of sending, and how many exchanges are left out, by (API, why)."""

    steps: list[Step]
    left_out: Counter[tuple[str, str]]


def plan(exchanges: Iterable[Exchange], kept: Filter | None = None) -> Plan:
    """What to send for these exchanges. Costs sorting them; holds all of them."""
    left_out: Counter[tuple[str, str]] = Counter()
    found = []
    for number, exchange in enumerate(exchanges, start=1):
        read = read_exchange(exchange, kept or Filter())
        if isinstance(read, str):
            left_out[api_keys.name(exchange.api_key) if exchange.request else "?", read] += 1
        else:
            found.append((number, exchange, *read))
    found.sort(key=lambda each: (_times(each[1])[0], each[0]))
    by_answer = sorted(range(len(found)), key=lambda index: _times(found[index][1])[1])
    ends_ns = [_times(found[index][1])[1] for index in by_answer]
    ranks = {index: rank for rank, index in enumerate(by_answer)}
    last = {exchange.request.connection: number for number, exchange, *_ in found if exchange.request}
    absences = _absences([(each[2], each[3], _times(each[1])[0]) for each in found])
    starts_ns = [start_ns for start_ns, _ in absences]
    steps = []
    for index, (number, exchange, request, body, response) in enumerate(found):
        assert exchange.request is not None
        sent_ns, answered_ns = _times(exchange)
        connection = exchange.request.connection
        before = bisect_left(ends_ns, sent_ns)
        is_last = last[connection] == number
        paced = None
        if away := bisect_left(starts_ns, sent_ns):
            start_ns, end_ns = absences[away - 1]
            paced = start_ns, min(sent_ns, end_ns) - start_ns
        rank = ranks[index]
        steps.append(
            Step(number, connection, request, body, response, sent_ns, answered_ns, before, rank, is_last, paced)
        )
    return Plan(steps, left_out)


def _absences(requests: list[tuple[Request, Any, int]]) -> list[tuple[int, int]]:
    """From a broker's last heartbeat to its next registration, or to when its session is over if that is sooner.

    (start, end) in order; those that overlap are one.
    """
    last_ns: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    for header, body, sent_ns in requests:
        if header.api_key == api_keys.BROKER_HEARTBEAT:
            last_ns[body.broker_id] = sent_ns
        elif header.api_key == api_keys.BROKER_REGISTRATION and body.broker_id in last_ns:
            start_ns = last_ns[body.broker_id]
            found.append((start_ns, min(sent_ns, start_ns + ABSENCE_NS_MAX)))
    absences: list[tuple[int, int]] = []
    for start_ns, end_ns in sorted(found):
        if absences and absences[-1][1] >= start_ns:
            absences[-1] = absences[-1][0], max(end_ns, absences[-1][1])
        else:
            absences.append((start_ns, end_ns))
    return absences


def _times(exchange: Exchange) -> tuple[int, int]:
    assert exchange.request is not None
    assert exchange.response is not None
    sent_ns = exchange.request.last_time_ns
    return sent_ns, max(exchange.response.last_time_ns, sent_ns)


def read_exchange(exchange: Exchange, kept: Filter) -> tuple[Request, Any, Any] | str:
    """Header, request body and response body of an exchange, or why it has to be left out."""
    if exchange.request is None:
        return "no request in the capture"
    if exchange.response is None:
        return "no answer in the capture"
    key, version = exchange.api_key, exchange.api_version
    if key in NOT_SENT:
        return NOT_SENT[key]
    if not kept.keeps(key):
        return "--filter"
    try:
        request = parse_request(exchange.request.data)
        body = messages.request(key).read(request.frame[request.body_offset :], version)
        offset = 4
        if messages.response_header_version(key, version) >= 1:
            _, offset = ResponseHeader.read_from(exchange.response.data, 1, 0)
        return request, body, read_response_body(exchange.response.data, offset, key, version)
    except WireError as error:
        return f"cannot be read: {error}"
