"""Group the connections of a capture into cluster sessions: all traffic to one cluster's controllers.

A cluster is identified by its id. A request that carries the id and was not refused (BrokerRegistration, Fetch,
FetchSnapshot), or a response with it (DescribeCluster, Metadata), names the cluster behind a server endpoint from its
first mention to its last. A connection without an id belongs to the cluster that its endpoint had when it began, or to
the next one if it began between two. An endpoint without any known id is a session of its own, `host:port`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError

_ID_IN_REQUEST = frozenset({api_keys.BROKER_REGISTRATION, api_keys.FETCH, api_keys.FETCH_SNAPSHOT})
_ID_IN_RESPONSE = frozenset({api_keys.DESCRIBE_CLUSTER, api_keys.METADATA})


class ConnectionFacts(NamedTuple):
    """The facts that decide a connection's session; `cluster_id` is None if it carries none."""

    conn_id: int
    incarnation: int
    server: str
    server_port: int
    cluster_id: str | None
    first_ns: int
    last_ns: int


class ClusterPeriod(NamedTuple):
    """A cluster behind an endpoint, from its first mention to its last."""

    server: str
    server_port: int
    cluster_id: str
    first_ns: int
    last_ns: int


class Sessions:
    """The sessions of a capture, from all of its periods."""

    def __init__(self, periods: Iterable[ClusterPeriod]) -> None:
        self._periods: dict[tuple[str, int], list[ClusterPeriod]] = {}
        for period in sorted(periods, key=lambda each: (each.first_ns, each.last_ns)):
            self._periods.setdefault((period.server, period.server_port), []).append(period)

    def of(self, facts: ConnectionFacts) -> str:
        """Return the name of a connection's session."""
        if facts.cluster_id is not None:
            return facts.cluster_id
        periods = self._periods.get((facts.server, facts.server_port))
        if not periods:
            return f"{facts.server}:{facts.server_port}"
        return next((each for each in periods if each.last_ns >= facts.first_ns), periods[-1]).cluster_id


def connections_of(exchanges: Iterable[Captured]) -> Iterator[ConnectionFacts]:
    """Return the facts of each connection. Costs a few numbers for each; decodes its messages until one has an id."""
    found: dict[tuple[int, int], ConnectionFacts] = {}
    for captured in exchanges:
        sent_ns, answered_ns = captured.request_ts_ns, captured.answered_ns
        known = found.get(captured.connection)
        if known is None:
            server = captured.server, captured.server_port
            known = ConnectionFacts(*captured.connection, *server, None, sent_ns, answered_ns)
        cluster_id = known.cluster_id or cluster_id_of(captured)
        found[captured.connection] = known._replace(
            cluster_id=cluster_id, first_ns=min(known.first_ns, sent_ns), last_ns=max(known.last_ns, answered_ns)
        )
    yield from found.values()


def cluster_id_of(captured: Captured) -> str | None:
    """Return the cluster id in an exchange that was not refused."""
    key = captured.api_key
    if captured.request is None or captured.response is None or key not in _ID_IN_REQUEST | _ID_IN_RESPONSE:
        return None
    try:
        answer = captured.read_response()
        if getattr(answer, "error_code", 0):
            return None
        message = answer if key in _ID_IN_RESPONSE else captured.read_request()[1]
    except WireError:
        return None
    return getattr(message, "cluster_id", None) or None
