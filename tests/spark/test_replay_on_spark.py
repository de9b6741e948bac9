"""Replays on Spark: sessions side by side, each request sent once, and a baseline."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mockraft import Controller
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.regression.captured import Captured, to_batch
from mockraft.spark_replay.regression.coordinator import ReplayCoordinator
from mockraft.spark_replay.regression.replay import Options
from mockraft.spark_replay.regression.rules import Override, Rules
from mockraft.spark_replay.regression.session_replay import Run, replay_session
from mockraft.spark_replay.regression.targets import Endpoint
from mockraft.wire import api_keys

pytestmark = pytest.mark.spark

KEPT = Options(kept=Filter.parse(["ApiVersions,BrokerRegistration,BrokerHeartbeat"]))


@pytest.fixture(scope="module")
def captured(controller_capture: str) -> list[Captured]:
    """Return the exchanges before a broker registers again, so that no waiting is needed."""
    found = read_exchanges(controller_capture, {19093})
    return found[:150]


JOB = Path(__file__).with_name("retry_job.py")


def table_of(spark: Any, captured: list[Captured]) -> Any:
    return spark.createDataFrame(pa.Table.from_batches([to_batch(captured)]))


def moved(captured: list[Captured], port: int) -> list[Captured]:
    """The same exchanges at another endpoint and time, of another cluster."""
    return [
        each._replace(
            conn_id=each.conn_id + port,
            server_port=port,
            request=each.request and each.request.replace(b"p66Y0sRpQNGVKjK4oTgauw", b"q66Y0sRpQNGVKjK4oTgauw"),
        )
        for each in captured
    ]


def test_sessions_are_replayed_separately_and_one_false_byte_is_one_difference(
    spark: Any, captured: list[Captured], tmp_path: Path
) -> None:
    from mockraft.spark_replay.spark.replay_summary import summarise
    from mockraft.spark_replay.spark.replaying import write_replay

    at = next(index for index, each in enumerate(captured) if each.api_key == api_keys.BROKER_HEARTBEAT)
    lie = bytearray(captured[at].response or b"")
    lie[12] ^= 1
    changed = [*captured]
    changed[at] = captured[at]._replace(response=bytes(lie))
    rules = Rules([Override("BrokerHeartbeat", "shouldShutDown", "ignored")])
    with Controller.sync(release="4.3") as controller:
        run = Run("r1", Endpoint(controller.host, controller.port), KEPT._replace(rules=rules))
        first = write_replay(spark, table_of(spark, changed), run, str(tmp_path / "a"))
        report: dict[str, Any] = summarise(first, rules)
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "a").rglob("*.parquet")} == {0o600}
    assert (report["sessions"], report["different"]) == (1, 1)
    (finding,) = report["differences"]
    assert (finding["api"], finding["path"], finding["kind"], finding["count"]) == (
        "BrokerHeartbeat",
        "isFenced",
        "changed",
        1,
    )
    assert report["sent"] == report["same"] + 1
    (unneeded,) = [each for each in report["rules"] if each["override"]]
    assert (unneeded["rule"], unneeded["fired"]) == ("BrokerHeartbeat:shouldShutDown", 0)
    # The same again with the first run as baseline: what it had as well does not count.
    with Controller.sync(release="4.3") as controller:
        again = Run("r2", Endpoint(controller.host, controller.port), KEPT)
        second = write_replay(spark, table_of(spark, changed), again, str(tmp_path / "b"))
    compared = summarise(second, rules, first.diffs)
    assert (compared["different"], compared["known"], compared["gone"]) == (0, 1, 0)


def test_possibly_sent_session_is_not_sent_again(spark: Any, captured: list[Captured]) -> None:
    from mockraft.spark_replay.spark.replaying import replay, with_sessions

    table = table_of(spark, [*captured, *moved(captured, 5)])
    names = {row["session"] for row in with_sessions(table).select("session").distinct().collect()}
    assert names == {"p66Y0sRpQNGVKjK4oTgauw", "q66Y0sRpQNGVKjK4oTgauw"}
    with Controller.sync(release="4.3") as controller, ReplayCoordinator("127.0.0.1") as driver:
        run = Run("r", Endpoint(controller.host, controller.port), KEPT)
        with pytest.raises(ValueError, match="need a ReplayCoordinator"):
            replay(table, run)
        found = replay(table, run, driver.client)
        assert {row["status"] for row in found.select("status").collect()} == {"ok", "left_out"}
        assert driver.granted == dict.fromkeys(names, 0)
        requests = len(controller.journal.exchanges())
        with pytest.raises(Exception, match="was already sent and is not sent again"):
            found.count()
        assert len(controller.journal.exchanges()) == requests


def test_task_that_is_run_again_sends_no_request_again(controller_capture: str) -> None:
    with Controller.sync(release="4.3") as controller:
        command = [sys.executable, str(JOB), controller_capture, controller.host, str(controller.port)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        received = [each.request for each in controller.journal.exchanges()]
    result = json.loads(done.stdout.splitlines()[-1])
    assert "is not sent again (task attempt" in result["error"]
    assert list(result["granted"].values()) == [0]
    sent_once = len(replayed_alone(controller_capture))
    assert len(received) == sent_once > 10


def replayed_alone(capture: str) -> list[Any]:
    """Return the exchanges of a controller that gets one replay without Spark."""
    from .retry_job import EXCHANGES

    with Controller.sync(release="4.3") as controller:
        run = Run("r", Endpoint(controller.host, controller.port))
        for _ in replay_session([to_batch(read_exchanges(capture, {19093})[:EXCHANGES])], run, "s"):
            pass
        return list(controller.journal.exchanges())
