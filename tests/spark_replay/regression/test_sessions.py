"""Connections of a capture by session: all requests to the controllers of one cluster."""

from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.sessions import ClusterPeriod, ConnectionFacts, Sessions, connections_of

from .conftest import CAPTURE


def facts(port: int, cluster_id: str | None, first_ns: int, last_ns: int) -> ConnectionFacts:
    return ConnectionFacts(1, 1, "c", port, cluster_id, first_ns, last_ns)


def sessions_of(said: list[ConnectionFacts]) -> Sessions:
    return Sessions(
        ClusterPeriod(each.server, each.server_port, each.cluster_id, each.first_ns, each.last_ns)
        for each in said
        if each.cluster_id is not None
    )


def test_a_controllers_capture_is_one_session_with_all_its_connections() -> None:
    captured = read_exchanges(CAPTURE, {19093})
    connections = list(connections_of(captured))
    assert len(connections) == 33
    assert len({each.cluster_id for each in connections}) == 2  # most say none
    (name,) = {sessions_of(connections).of(each) for each in connections}
    assert len(name) == 22
    assert [each.number for each in captured] == list(range(1, 867))


def test_controllers_of_one_cluster_share_a_session() -> None:
    sessions = sessions_of([facts(1, "A", 0, 9), facts(2, "A", 3, 8)])
    assert sessions.of(facts(2, None, 4, 5)) == "A"
    assert sessions.of(facts(3, None, 4, 5)) == "c:3"


def test_an_endpoint_that_had_two_clusters_one_after_the_other_is_two_sessions() -> None:
    sessions = sessions_of([facts(1, "A", 10, 20), facts(1, "A", 15, 40), facts(1, "B", 60, 90)])
    assert [sessions.of(facts(1, None, at, at + 1)) for at in (0, 39, 50, 61, 200)] == ["A", "A", "B", "B", "B"]
    # What a connection says itself counts, whenever it began.
    assert sessions.of(facts(1, "B", 39, 70)) == "B"
