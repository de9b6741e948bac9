"""Captures of mockraft replayed to another mockraft, session by session: each granted once, ids translated."""

import asyncio
import json
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pyarrow as pa
import pytest
from mockraft import Controller
from mockraft.kafka.child_process import free_port
from mockraft.releases import DEFAULT
from mockraft.server.stubs.stub import stub
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.regression.captured import Captured, of_batches, to_batch
from mockraft.spark_replay.regression.coordinator import AlreadySentError, ReplayCoordinator
from mockraft.spark_replay.regression.diff import CHANGED, NO_ANSWER, Difference
from mockraft.spark_replay.regression.junit import as_junit
from mockraft.spark_replay.regression.remote_clock import GAP_S_MAX, RemoteClock
from mockraft.spark_replay.regression.replay import Options, Replayed, replay
from mockraft.spark_replay.regression.send_order import CAUSAL, PACED, RequestToSend, steps, survey
from mockraft.spark_replay.regression.session_replay import Run, replay_session
from mockraft.spark_replay.regression.sessions import ClusterPeriod, ConnectionFacts, Sessions, connections_of
from mockraft.spark_replay.regression.summary import report
from mockraft.spark_replay.regression.targets import Endpoint, FreshProcess, TargetError, install
from mockraft.spark_replay.schemas import DIFFS, EXCHANGES, REPLAY_RESULTS
from mockraft.wire import api_keys
from mockraft.wire.client import DisconnectedError, connect
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData

from ...rows import each_row
from .conftest import CAPTURE


async def on(controller: Controller, exchanges: list[Captured], **options: Any) -> Replayed:
    return await replay(exchanges, controller.host, controller.port, Options(**options))


async def test_a_new_controller_with_other_ids_and_offsets_gives_the_same_answers(exchanges: list[Captured]) -> None:
    async with Controller(seed=77, node_id=3000) as controller:
        # What comes first here moves every offset and epoch.
        client = await connect(controller.host, controller.port)
        for user in "abc":
            entity = EntityData(entity_type="user", entity_name=user)
            entry = EntryData(entity=[entity], ops=[OpData(key="producer_byte_rate", value=1000.0)])
            assert (await client.send(AlterClientQuotasRequest(entries=[entry]))).entries[0].error_code == 0
        await client.close()
        replayed = await on(controller, exchanges)
    found = report(replayed)
    assert found.findings == []
    assert found.sent == found.same > 10
    for kind in ("topic id", "broker epoch", "cluster id", "port"):
        ((captured, live),) = replayed.renaming.pairs[kind].items()
        assert captured != live


async def test_reports_changed_field_with_path_and_both_values(exchanges: list[Captured]) -> None:
    async with Controller() as controller:
        lie = stub("BrokerHeartbeat", want_fence=False).once().change(response={"isFenced": True})
        controller.running.node.script.stubs.add(lie)
        replayed = await on(controller, exchanges)
    (finding,) = report(replayed).findings
    assert (finding.api, finding.path, finding.captured, finding.live) == ("BrokerHeartbeat", "isFenced", False, True)
    assert finding.occurrences == 1
    (outcome,) = (each for each in replayed.outcomes if not each.is_same)
    assert list(outcome.differences) == [Difference("isFenced", CHANGED, False, True)]
    assert outcome.captured.number == finding.first


async def test_a_field_that_is_ignored_is_no_difference(exchanges: list[Captured]) -> None:
    for ignored in ("isFenced", "BrokerHeartbeat:isFenced"):
        async with Controller() as controller:
            lie = stub("BrokerHeartbeat").change(response={"isFenced": True})
            controller.running.node.script.stubs.add(lie)
            assert report(await on(controller, exchanges, ignored=[ignored])).findings == []


async def test_reports_missing_response_and_continues(exchanges: list[Captured]) -> None:
    async with Controller() as controller:
        controller.running.node.script.stubs.add(stub("CreateTopics").disconnect_on())
        found = report(await on(controller, exchanges))
    gone = next(each for each in found.findings if each.path == NO_ANSWER)
    assert (gone.api, gone.occurrences) == ("CreateTopics", 1)
    assert found.sent > found.same > 10


async def test_only_filtered_requests_are_sent(exchanges: list[Captured]) -> None:
    async with Controller() as controller:
        replayed = await on(controller, exchanges, kept=Filter.parse(["ApiVersions"]))
    assert {each.api for each in replayed.outcomes} == {"ApiVersions"}
    assert ("BrokerRegistration", "--filter") in replayed.left_out


async def test_paced_requests_are_never_early(exchanges: list[Captured]) -> None:
    first = [each for each in exchanges if each.api_key != api_keys.FETCH][:6]
    async with Controller() as controller:
        replayed = await on(controller, first, order=PACED, speed=1000.0)
        arrived = [each.received_ms for each in controller.journal.exchanges()]
    assert report(replayed).findings == []
    assert arrived == sorted(arrived)


async def test_unreachable_address_is_an_error(exchanges: list[Captured]) -> None:
    with pytest.raises(DisconnectedError, match="cannot connect"):
        await replay(exchanges, "127.0.0.1", free_port())


def test_steps_follow_capture_order_and_broker_absences() -> None:
    captured = read_exchanges(CAPTURE, {19093})
    known = survey(captured)
    to_send = [step for step in steps(captured, known) if isinstance(step, RequestToSend)]
    assert len(to_send) == 858
    sent_ns = [step.captured.request_ts_ns for step in to_send]
    assert sent_ns == sorted(sent_ns)
    assert (known.node_id, known.exchanges) == (3000, 866)
    # Two brokers were away one after the other, and one of them again: each time eleven seconds are enough.
    paces = [step.paced for step in to_send if step.paced is not None]
    assert len({start_ns for start_ns, _ in paces}) == 3
    assert max(passed_ns for _, passed_ns in paces) == 11_000_000_000
    assert sum(step.is_last for step in to_send) <= len({step.captured.connection for step in to_send})


async def test_a_real_controllers_capture_has_the_same_answers() -> None:
    """Exchanges before a broker's absence, which would need waiting (see capture-and-replay.md)."""
    exchanges = read_exchanges(CAPTURE, {19093})[:450]
    async with Controller(release="4.3") as controller:
        found = report(await on(controller, exchanges))
    assert found.findings == []
    assert found.same == found.sent > 430


SERVE = (sys.executable, "-m", "mockraft", "serve", "--port", "0")


def replayed(exchanges: list[Captured], run: Run) -> tuple[pa.Table, pa.Table]:
    pairs = list(replay_session([to_batch(exchanges)], run, "s"))
    return pa.Table.from_batches([results for results, _ in pairs]), pa.Table.from_batches([d for _, d in pairs])


def on_a_controller(exchanges: list[Captured], **options: Any) -> tuple[pa.Table, pa.Table]:
    with Controller.sync() as controller:
        return replayed(exchanges, Run("r", Endpoint(controller.host, controller.port), Options(**options)))


def counted(diffs: pa.Table) -> list[dict[str, object]]:
    return [row for row in diffs.to_pylist() if row["kind"] != "volatile_ok"]


def test_mockrafts_own_capture_has_no_difference_on_a_new_process_and_a_row_an_exchange(
    exchanges: list[Captured],
) -> None:
    results, diffs = replayed(exchanges, Run("r", FreshProcess(SERVE)))
    assert (results.schema, diffs.schema) == (REPLAY_RESULTS, DIFFS)
    assert counted(diffs) == []
    assert sorted(results["number"].to_pylist()) == [each.number for each in exchanges]
    rows = {row["number"]: row for row in results.to_pylist()}
    for each in exchanges:
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


def test_one_changed_byte_is_exactly_that_difference(exchanges: list[Captured]) -> None:
    at = next(index for index, each in enumerate(exchanges) if each.api_key == api_keys.BROKER_HEARTBEAT)
    response = exchanges[at].response
    assert response is not None
    # correlation id, no tags, throttle, error code, isCaughtUp: the next byte says whether the broker is fenced
    changed = bytearray(response)
    changed[12] ^= 1
    exchanges[at] = exchanges[at]._replace(response=bytes(changed))
    _, diffs = on_a_controller(exchanges)
    (row,) = counted(diffs)
    assert (row["number"], row["path"], row["kind"], row["rule"]) == (exchanges[at].number, "isFenced", "changed", "")
    assert {row["expected"], row["actual"]} == {"true", "false"}


def test_exchange_without_response_is_a_row_with_reason(exchanges: list[Captured]) -> None:
    lost = exchanges[0]._replace(response=None, response_frame_no=None)
    results, diffs = on_a_controller([lost, *exchanges[1:3]])
    row = results.to_pylist()[0]
    assert (row["status"], row["detail"], row["equal"]) == ("left_out", "no answer in the capture", None)
    assert diffs.num_rows == len([each for each in diffs["number"].to_pylist() if each != lost.number])


def test_rows_become_exchanges_again(exchanges: list[Captured]) -> None:
    batch = to_batch(exchanges)
    assert batch.schema == EXCHANGES
    assert list(of_batches([batch.slice(0, 3), batch.slice(3)])) == exchanges


def test_a_fresh_process_is_as_the_captured_controller_was(exchanges: list[Captured]) -> None:
    known = survey(exchanges)
    assert known.node_id == 3000
    assert known.metadata_version is not None
    assert known.metadata_version > 20
    assert known.release == DEFAULT
    assert Counter(known.cluster_ids).total() > 2


def test_new_process_skips_the_time_that_brokers_are_away() -> None:
    captured = read_exchanges(CAPTURE, {19093})
    with FreshProcess(SERVE).open(survey(captured), CAUSAL) as opened:

        def now_ms() -> int:
            with urlopen(f"{opened.admin}/v1/clock") as answer:
                return int(json.load(answer)["nowMs"])

        async def skip() -> None:
            clock = RemoteClock(str(opened.admin))
            await clock.skip_to(clock.now_s() + 10)
            await clock.skip_to(clock.now_s() - 1)

        before_ms = now_ms()
        asyncio.run(skip())
        assert now_ms() >= before_ms + 10_000
    with pytest.raises(DisconnectedError, match="cannot be moved"):
        asyncio.run(skip())
    results, diffs = replayed(captured, Run("r", FreshProcess(SERVE)))
    assert counted(diffs) == []  # as with real time: docs/evidence/replayed-capture.md
    assert results["equal"].to_pylist().count(False) == 0


def test_a_fresh_process_ends_with_a_killed_task() -> None:
    task = (
        "import sys, time\n"
        "from mockraft.spark_replay.regression.send_order import PACED, survey\n"
        "from mockraft.spark_replay.regression.targets import FreshProcess\n"
        f"with FreshProcess({SERVE}).open(survey([]), PACED):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", task], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        # psutil's own `children` compares times of a clock that is set
        started = [each for each in psutil.process_iter(["ppid"]) if each.info["ppid"] == running.pid]
        assert len(started) == 1
        running.kill()
    assert psutil.wait_procs(started, timeout=30)[1] == []


async def test_time_in_which_the_replay_stood_still_does_not_pass_for_the_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def post(_: RemoteClock, body: bytes) -> None:
        sent_ms.append(json.loads(body)["ms"])

    clock, loop, sent_ms = RemoteClock("http://127.0.0.1:1"), asyncio.get_running_loop(), list[int]()
    later_s = loop.time() + 60
    with monkeypatch.context() as patched:
        patched.setattr(RemoteClock, "_post", post)
        patched.setattr(loop, "time", lambda: later_s)
        await clock.skip_to(clock.now_s())
        await clock.skip_to(clock.now_s() + 5)
    assert sent_ms == [1000 * GAP_S_MAX, 5_000]


@each_row(("order", "command"), [(PACED, SERVE), (CAUSAL, (SERVE[0], "-u", *SERVE[1:]))])
def test_time_is_not_skipped_when_paced_or_by_another_mockraft(order: str, command: tuple[str, ...]) -> None:
    with FreshProcess(command).open(survey(read_exchanges(CAPTURE, {19093})), order) as opened:
        assert opened.admin is None


def test_failed_target_is_an_error_with_its_output(exchanges: list[Captured]) -> None:
    for command, complaint in (
        ([sys.executable, "-c", "raise SystemExit('no luck')"], "did not become ready: no luck"),
        (["no-such-command"], "cannot start no-such-command: No such file or directory"),
    ):
        with pytest.raises(TargetError, match=complaint):
            replayed(exchanges, Run("r", FreshProcess(command)))


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


def test_wheels_of_one_name_are_installed_by_their_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "mockraft-9.9-py3-none-any.whl"
    with pytest.raises(TargetError, match=r"cannot read .*9\.9-py3-none-any\.whl: No such file"):
        install(str(wheel), tmp_path)
    asked: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command[-1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("mockraft.spark_replay.regression.targets.subprocess.run", run)
    monkeypatch.setattr("mockraft.spark_replay.regression.targets.venv.create", lambda home, **_: home.mkdir())
    homes = []
    for content in (b"one", b"two", b"one"):
        wheel.write_bytes(content)
        homes.append(install(str(wheel), tmp_path).parent.parent.name)
    assert homes[0] == homes[2] != homes[1]
    assert asked == [str(wheel), str(wheel)]
    assert FreshProcess(["python"], version=str(wheel)).name == wheel.name


def test_junit_has_a_case_for_each_api_and_fails_by_differences_that_count() -> None:
    finding = {
        "api": "Fetch",
        "path": "errorCode",
        "kind": "changed",
        "expected": 0,
        "actual": "\x00",
        "count": 2,
        "first": {"session": "s", "exchange": 7, "frame": 3, "connection": "c", "correlationId": 5, "time": "t"},
    }
    # Of Metadata the report lists no kind: it lists the most frequent ones of all APIs only.
    counts = (("Fetch", 9, 2), ("Metadata", 5, 1), ("BrokerHeartbeat", 4, 0))
    apis = [{"api": api, "sent": sent, "differences": count} for api, sent, count in counts]
    suite = ET.fromstring(as_junit({"target": "mockraft==1.2", "apis": apis, "differences": [finding]}))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    failure, unlisted = suite.iter("failure")
    assert failure.get("message") == "2 differences in 9 responses"
    assert (unlisted.get("message"), unlisted.text) == ("1 difference in 5 responses", None)
    assert failure.text == ("errorCode: 0 NONE → \\u0000 2x (first #7 of s: request 3 of c, correlation id 5, t)")


def test_session_is_granted_only_once() -> None:
    with ReplayCoordinator("127.0.0.1") as driver:
        driver.client.claim("a", 0)
        driver.client.claim("b", 0)
        for attempt in (0, 1):
            with pytest.raises(AlreadySentError, match=f"session a was already sent .*task attempt {attempt}"):
                driver.client.claim("a", attempt)
    assert driver.granted == {"a": 0, "b": 0}


def test_client_without_token_gets_no_response() -> None:
    with ReplayCoordinator("127.0.0.1") as driver:
        for said in ({"claim": "a", "attempt": 0}, {"claim": "a", "attempt": 0, "token": "x"}):
            with socket.create_connection((driver.client.host, driver.client.port), 10) as line:
                line.sendall(json.dumps(said).encode() + b"\n")
                assert line.makefile().read() == ""
    assert driver.granted == {}


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
