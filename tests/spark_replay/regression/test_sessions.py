"""Grouping the connections of a capture into sessions."""

from pathlib import Path

from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.sessions import ConnectionFacts, Sessions, cluster_periods_of, connections_of

CAPTURE = Path(__file__).parents[2] / "captures" / "controller-4.3.1.pcap"


def facts(port: int, cluster_id: str | None, first_ns: int, last_ns: int, conn_id: int = 1) -> ConnectionFacts:
    return ConnectionFacts(conn_id, 1, "c", port, cluster_id, first_ns, last_ns)


def test_a_controllers_capture_is_one_session_with_all_its_connections() -> None:
    captured = read_exchanges(CAPTURE, {19093})
    connections = list(connections_of(captured))
    assert len(connections) == 33
    assert len({each.cluster_id for each in connections}) == 2  # most say none
    (name,) = {Sessions(cluster_periods_of(connections)).of(each) for each in connections}
    assert len(name) == 22
    assert [each.number for each in captured] == list(range(1, 867))


def test_controllers_of_one_cluster_share_a_session() -> None:
    said = [facts(1, "A", 0, 9), facts(2, "A", 3, 8)]
    sessions = Sessions(cluster_periods_of(said))
    assert sessions.of(facts(2, None, 4, 5)) == "A"
    assert sessions.of(facts(3, None, 4, 5)) == "c:3"


def test_an_endpoint_that_had_two_clusters_one_after_the_other_is_two_sessions() -> None:
    sessions = Sessions(cluster_periods_of([facts(1, "A", 10, 20), facts(1, "A", 15, 40), facts(1, "B", 60, 90)]))
    assert [sessions.of(facts(1, None, at, at + 1)) for at in (0, 39, 50, 61, 200)] == ["A", "A", "B", "B", "B"]
    # What a connection says itself counts, whenever it began.
    assert sessions.of(facts(1, "B", 39, 70)) == "B"
