"""A session as rows: replaying mockraft's own capture, unchanged and with one changed byte."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mockraft import Controller
from mockraft.kafka.child_process import free_port
from mockraft.spark_replay.regression.captured import Captured, of_batches, to_batch
from mockraft.spark_replay.regression.replay import Options
from mockraft.spark_replay.regression.send_order import survey
from mockraft.spark_replay.regression.session_replay import Run, replay_session
from mockraft.spark_replay.regression.targets import Endpoint, FreshProcess, TargetError, install
from mockraft.spark_replay.schemas import DIFFS, EXCHANGES, REPLAY_RESULTS
from mockraft.wire import api_keys

SERVE = (sys.executable, "-m", "mockraft", "serve", "--port", "0")


@pytest.fixture
def captured(exchanges: list[Captured]) -> list[Captured]:
    return exchanges


def replayed(captured: list[Captured], run: Run) -> tuple[pa.Table, pa.Table]:
    pairs = list(replay_session([to_batch(captured)], run, "s"))
    return pa.Table.from_batches([results for results, _ in pairs]), pa.Table.from_batches([d for _, d in pairs])


def on_a_controller(captured: list[Captured], **options: Any) -> tuple[pa.Table, pa.Table]:
    with Controller.sync() as controller:
        return replayed(captured, Run("r", Endpoint(controller.host, controller.port), Options(**options)))


def counted(diffs: pa.Table) -> list[dict[str, object]]:
    return [row for row in diffs.to_pylist() if row["kind"] != "volatile_ok"]


def test_mockrafts_own_capture_has_no_difference_on_a_new_process_and_a_row_an_exchange(
    captured: list[Captured],
) -> None:
    results, diffs = replayed(captured, Run("r", FreshProcess(SERVE)))
    assert (results.schema, diffs.schema) == (REPLAY_RESULTS, DIFFS)
    assert counted(diffs) == []
    assert sorted(results["number"].to_pylist()) == [each.number for each in captured]
    rows = {row["number"]: row for row in results.to_pylist()}
    for each in captured:
        row = rows[each.number]
        assert (row["conn_id"], row["incarnation"], row["api_key"]) == (*each.connection, each.api_key)
        assert (row["run_id"], row["session"], row["mode"]) == ("r", "s", "causal")
        assert row["captured_response"] == each.response
        if each.response is not None:
            assert (row["status"], row["equal"]) == ("ok", True)
            assert row["raw_equal"] == (row["live_response"] == each.response)
    # Other bytes, the same answer: each time a rule says why.
    other = {number for number, row in rows.items() if row["raw_equal"] is False}
    assert other
    assert other == {row["number"] for row in diffs.to_pylist()}


def test_one_changed_byte_is_exactly_that_difference(captured: list[Captured]) -> None:
    at = next(index for index, each in enumerate(captured) if each.api_key == api_keys.BROKER_HEARTBEAT)
    response = captured[at].response
    assert response is not None
    # correlation id, no tags, throttle, error code, isCaughtUp: the next byte says whether the broker is fenced
    changed = bytearray(response)
    changed[12] ^= 1
    captured[at] = captured[at]._replace(response=bytes(changed))
    _, diffs = on_a_controller(captured)
    (row,) = counted(diffs)
    assert (row["number"], row["path"], row["kind"], row["rule"]) == (captured[at].number, "isFenced", "changed", "")
    assert {row["expected"], row["actual"]} == {"true", "false"}


def test_at_the_captures_pace_the_answers_are_the_same(captured: list[Captured]) -> None:
    results, diffs = on_a_controller(captured, order="paced", speed=50.0)
    assert counted(diffs) == []
    assert set(results["mode"].to_pylist()) == {"paced"}


def test_connection_order_is_independent_except_for_ids(
    captured: list[Captured],
) -> None:
    results, diffs = on_a_controller(captured, order="connection")
    sent: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in results.to_pylist():
        sent.setdefault((row["conn_id"], row["incarnation"]), []).append((row["number"], row["sent_ns"]))
    for each in sent.values():
        assert [at for _, at in sorted(each)] == sorted(at for _, at in each)
    # Nothing keeps a client from asking for a topic before there is a broker; heartbeats have the live epoch.
    asked_by_the_client = {api_keys.CREATE_TOPICS, api_keys.DELETE_TOPICS, api_keys.BROKER_HEARTBEAT}
    assert {row["api_key"] for row in counted(diffs)} <= asked_by_the_client
    assert [row["path"] for row in counted(diffs) if row["api_key"] == api_keys.BROKER_HEARTBEAT] in ([], ["isFenced"])


def test_exchange_without_response_is_a_row_with_reason(captured: list[Captured]) -> None:
    lost = captured[0]._replace(response=None, response_frame_no=None)
    results, diffs = on_a_controller([lost, *captured[1:3]])
    row = results.to_pylist()[0]
    assert (row["status"], row["detail"], row["equal"]) == ("left_out", "no answer in the capture", None)
    assert diffs.num_rows == len([each for each in diffs["number"].to_pylist() if each != lost.number])


def test_rows_become_exchanges_again(captured: list[Captured]) -> None:
    batch = to_batch(captured)
    assert batch.schema == EXCHANGES
    assert list(of_batches([batch.slice(0, 3), batch.slice(3)])) == captured


def test_a_fresh_process_is_as_the_captured_controller_was(captured: list[Captured]) -> None:
    known = survey(captured)
    assert known.node_id == 3000
    assert known.metadata_version is not None
    assert known.metadata_version > 20
    assert Counter(known.cluster_ids).total() > 2


def test_failed_target_is_an_error_with_its_output(captured: list[Captured]) -> None:
    for command, complaint in (
        ([sys.executable, "-c", "raise SystemExit('no luck')"], "did not become ready: no luck"),
        (["no-such-command"], "cannot start no-such-command: No such file or directory"),
    ):
        with pytest.raises(TargetError, match=complaint):
            replayed(captured, Run("r", FreshProcess(command)))


def test_unreachable_endpoint_is_an_error(captured: list[Captured]) -> None:
    with pytest.raises(ConnectionError, match="cannot connect"):
        replayed(captured, Run("r", Endpoint("127.0.0.1", free_port())))


def test_reports_version_that_cannot_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(TargetError, match=r"cannot install mockraft==0\.0\.7: ERROR: .*--target-python"):
        install("0.0.7", tmp_path)
    with pytest.raises(TargetError, match="is not a version"):
        install("../x", tmp_path)


def test_a_version_that_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    (tmp_path / "1.2").mkdir()
    (tmp_path / "1.2" / "installed").touch()
    assert install("1.2", tmp_path).parent.parent == tmp_path / "1.2"
