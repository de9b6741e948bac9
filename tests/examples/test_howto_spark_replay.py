"""Example for docs/spark-replay.md: replay a session without Spark."""

from pathlib import Path

from mockraft import Controller
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.captured import to_batch
from mockraft.spark_replay.regression.session_replay import Run, replay_session
from mockraft.spark_replay.regression.targets import Endpoint
from mockraft.spark_replay.schemas import REPLAY_RESULTS

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"


def test_replays_a_session() -> None:
    captured = read_exchanges(CAPTURE, {19093})[:60]
    with Controller.sync() as controller:
        host, port = controller.host, controller.port
        for results, diffs in replay_session([to_batch(captured)], Run("night", Endpoint(host, port)), "cluster"):
            assert results.schema == REPLAY_RESULTS
            assert all(row["kind"] == "volatile_ok" for row in diffs.to_pylist())
            assert results.num_rows == 60
