"""Which connections of a capture belong together: a cluster session is all that was said to one cluster's controllers.

A cluster is known by its id. What says it and was not refused (BrokerRegistration, Fetch, FetchSnapshot, and answers
of DescribeCluster and Metadata) names the cluster behind a server endpoint from its first mention to its last. A
connection that says none is of the cluster that its endpoint had when it began, or of the next one where it began
between two. An endpoint of which no id is known is a session of its own, `host:port`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError

_SAID_BY_REQUEST = frozenset({api_keys.BROKER_REGISTRATION, api_keys.FETCH, api_keys.FETCH_SNAPSHOT})
_SAID_BY_RESPONSE = frozenset({api_keys.DESCRIBE_CLUSTER, api_keys.METADATA})


class ConnectionFacts(NamedTuple):
    """What a connection is assigned by; `cluster_id` is None where it says none."""

    conn_id: int
    incarnation: int
    server: str
    server_port: int
    cluster_id: str | None
    first_ns: int
    last_ns: int


class Reign(NamedTuple):
    """A cluster behind an endpoint, from its first mention to its last."""

    server: str
    server_port: int
    cluster_id: str
    first_ns: int
    last_ns: int


class Sessions:
    """The sessions of a capture, from all reigns in it."""

    def __init__(self, reigns: Iterable[Reign]) -> None:
        self._reigns: dict[tuple[str, int], list[Reign]] = {}
        for reign in sorted(reigns, key=lambda each: (each.first_ns, each.last_ns)):
            self._reigns.setdefault((reign.server, reign.server_port), []).append(reign)

    def of(self, facts: ConnectionFacts) -> str:
        """The name of a connection's session."""
        if facts.cluster_id is not None:
            return facts.cluster_id
        reigns = self._reigns.get((facts.server, facts.server_port))
        if not reigns:
            return f"{facts.server}:{facts.server_port}"
        return next((each for each in reigns if each.last_ns >= facts.first_ns), reigns[-1]).cluster_id


def reigns_of(connections: Iterable[ConnectionFacts]) -> list[Reign]:
    """The reigns that connections tell of."""
    found: dict[tuple[str, int, str], Reign] = {}
    for facts in connections:
        if facts.cluster_id is None:
            continue
        key = facts.server, facts.server_port, facts.cluster_id
        known = found.get(key)
        first_ns = min(facts.first_ns, known.first_ns) if known else facts.first_ns
        last_ns = max(facts.last_ns, known.last_ns) if known else facts.last_ns
        found[key] = Reign(*key, first_ns, last_ns)
    return list(found.values())


def connections_of(exchanges: Iterable[Captured]) -> Iterator[ConnectionFacts]:
    """The facts of each connection. Costs a few numbers a connection, and reads its messages until it says an id."""
    found: dict[tuple[int, int], ConnectionFacts] = {}
    for captured in exchanges:
        sent_ns, answered_ns = captured.request_ts_ns, captured.response_ts_ns or captured.request_ts_ns
        known = found.get(captured.connection)
        if known is None:
            server = captured.server, captured.server_port
            known = ConnectionFacts(*captured.connection, *server, None, sent_ns, answered_ns)
        cluster_id = known.cluster_id or cluster_id_of(captured)
        found[captured.connection] = known._replace(
            cluster_id=cluster_id, first_ns=min(known.first_ns, sent_ns), last_ns=max(known.last_ns, answered_ns)
        )
    yield from found.values()


def by_session(exchanges: Iterable[Captured]) -> dict[str, list[Captured]]:
    """A capture's exchanges by session, on one machine; numbered anew in each."""
    given = list(exchanges)
    connections = list(connections_of(given))
    sessions = Sessions(reigns_of(connections))
    names = {(each.conn_id, each.incarnation): sessions.of(each) for each in connections}
    found: dict[str, list[Captured]] = {}
    for captured in given:
        session = found.setdefault(names[captured.connection], [])
        session.append(captured._replace(number=len(session) + 1))
    return found


def cluster_id_of(captured: Captured) -> str | None:
    """The cluster id that an exchange says and that was not refused."""
    key = captured.api_key
    if captured.request is None or captured.response is None or key not in _SAID_BY_REQUEST | _SAID_BY_RESPONSE:
        return None
    try:
        answer: Any = captured.read_response()
        if getattr(answer, "error_code", 0):
            return None
        told = answer if key in _SAID_BY_RESPONSE else captured.read_request()[1]
    except WireError:
        return None
    return getattr(told, "cluster_id", None) or None
