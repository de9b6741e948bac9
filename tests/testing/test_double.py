"""Stubs, faults and verification of a controller from Python."""

import asyncio
import copy
import json
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest as KioRequest
from kio.schema.broker_heartbeat.v1.response import BrokerHeartbeatResponse as KioResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i32Timedelta, i64
from mockraft import (
    AwaitedController,
    BrokerState,
    Controller,
    Match,
    Quorum,
    Stub,
    SyncController,
    VerificationError,
    WaitTimeoutError,
    stub,
)
from mockraft.kafka_api.journal.exchange import Exchange
from mockraft.server.stubs.errors import StubError
from mockraft.wire import api_keys, error_codes
from mockraft.wire.client import DisconnectedError
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest

from ..rows import each_row

CLUSTER = DescribeClusterRequest(endpoint_type=2)
HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, want_fence=True)


def test_a_stub_takes_effect_at_once_and_counts_its_calls(mockraft: SyncController) -> None:
    moved = mockraft.stub("BrokerHeartbeat", broker_id=1).times(2).inject_error("NOT_CONTROLLER")
    assert not moved.called
    codes = [mockraft.ask(HEARTBEAT).error_code for _ in range(3)]
    assert codes == [error_codes.NOT_CONTROLLER, error_codes.NOT_CONTROLLER, error_codes.STALE_BROKER_EPOCH]
    assert moved.call_count == 2
    assert [exchange.request.broker_id for exchange in moved.calls] == [1, 1]
    (listed,) = mockraft.stubs
    assert listed.id == moved.id


def test_live_stub_can_get_an_id(mockraft: SyncController) -> None:
    gone = mockraft.stub("DescribeCluster").named("gone", id="gone").drop()
    assert [each.id for each in mockraft.stubs] == [gone.id] == ["gone"]
    assert mockraft.verify(0, gone) == []
    other = mockraft.stub("Fetch")
    with pytest.raises(StubError, match="there is a stub 'gone' already"):
        other.named("gone", id="gone")
    mockraft.remove(other)
    mockraft.remove("gone")
    assert mockraft.ask(CLUSTER).error_code == 0


def test_stub_may_be_a_value_or_json_and_is_addressed_by_id(mockraft: SyncController) -> None:
    first = mockraft.add(stub("DescribeCluster").drop().named("gone", id="a"))
    mockraft.add({"id": "b", "match": {"api": "DescribeCluster"}, "actions": ["disconnectOn"]})
    assert {each.id for each in mockraft.stubs} == {"a", "b"}
    mockraft.remove(first)
    mockraft.remove("b")
    assert mockraft.stubs == []
    assert mockraft.ask(CLUSTER).error_code == 0


def test_a_stub_lasts_as_long_as_its_block(mockraft: SyncController) -> None:
    with mockraft.stubbed(stub("DescribeCluster").disconnect_on()) as (gone,):
        with pytest.raises(DisconnectedError):
            mockraft.ask(CLUSTER)
        assert gone.called
    assert mockraft.ask(CLUSTER).error_code == 0
    with pytest.raises(AssertionError, match="never used: DescribeCluster"), mockraft.stubbed(stub("DescribeCluster")):
        pass
    assert mockraft.stubs == []


def test_scenarios_are_read_and_set(mockraft: SyncController) -> None:
    away = stub("DescribeCluster").in_scenario("failover", requires="Away").inject_error("NOT_CONTROLLER")
    mockraft.add(away)
    assert mockraft.scenarios == {"failover": "Started"}
    assert mockraft.ask(CLUSTER).error_code == 0
    mockraft.set_scenario("failover", "Away")
    assert mockraft.ask(CLUSTER).error_code == error_codes.NOT_CONTROLLER


def test_requests_are_found_by_api_fields_match_and_function(mockraft: SyncController) -> None:
    mockraft.ask(HEARTBEAT)
    before = mockraft.mark()
    mockraft.ask(UnregisterBrokerRequest(broker_id=2), client_id="admin")
    assert [exchange.api for exchange in mockraft.requests()] == ["BrokerHeartbeat", "UnregisterBroker"]
    assert [exchange.api for exchange in mockraft.requests(since=before)] == ["UnregisterBroker"]
    assert len(mockraft.requests("BrokerHeartbeat", want_fence=True)) == 1
    assert mockraft.requests("BrokerHeartbeat", want_fence=False) == []
    assert len(mockraft.requests(client_id="admin")) == 1
    assert len(mockraft.requests(Match(api=63, where={"brokerId": 1}))) == 1
    assert len(mockraft.requests(stub("BrokerHeartbeat"), broker_id=1)) == 1
    assert len(mockraft.requests(lambda exchange: exchange.response.error_code != 0)) == 2
    with pytest.raises(ValueError, match="want_fence cannot be given too"):
        mockraft.requests(bool, want_fence=True)
    with pytest.raises(ValueError, match="wantFence"):
        mockraft.requests("BrokerHeartbeat", want_fenced=True)


def test_a_failed_verification_lists_near_misses(mockraft: SyncController) -> None:
    mockraft.ask(HEARTBEAT)
    assert len(mockraft.verify(1, "BrokerHeartbeat", broker_id=1)) == 1
    mockraft.verify(0, "BrokerRegistration")
    with pytest.raises(VerificationError) as failed:
        mockraft.verify(1, "BrokerHeartbeat", broker_id=1, want_fence=False)
    assert "expected exactly 1, found 0 of 1 requests" in str(failed.value)
    assert "✗ wantFence: wanted False, there was True" in str(failed.value)
    assert len(failed.traceback) == 2


def test_requests_are_waited_for(mockraft: SyncController) -> None:
    mockraft.start_broker(1)
    heartbeats = mockraft.wait_for("BrokerHeartbeat", 2, broker_id=1)
    assert {exchange.request.broker_id for exchange in heartbeats} == {1}
    with pytest.raises(WaitTimeoutError, match=r"waited 0.01 s: BrokerHeartbeat brokerId=2: expected at least 1"):
        mockraft.wait_for("BrokerHeartbeat", timeout_s=0.01, broker_id=2)
    with pytest.raises(TimeoutError):
        mockraft.wait_for("BrokerHeartbeat", timeout_s=0.01, broker_id=2)
    with pytest.raises(ZeroDivisionError):
        mockraft.wait_for(lambda exchange: 1 // 0 > 1)


def test_the_nearest_request_of_a_stub_says_why_it_did_not_serve(mockraft: SyncController) -> None:
    late = mockraft.stub("BrokerHeartbeat").on_call(5).with_priority(1)
    elsewhere = mockraft.stub("BrokerHeartbeat").in_scenario("s", requires="Never")
    mockraft.stub("BrokerHeartbeat").pass_through()
    shadowed = mockraft.stub("BrokerHeartbeat").with_priority(-1)
    mockraft.ask(HEARTBEAT)
    for of, why in (
        (late, "✗ trigger: {'onCall': 5} was not reached: 1 matching request"),
        (elsewhere, "✗ scenario: wanted 'Never', there was 'Started'"),
        (shadowed, "✗ served by: stub-3, which precedes this stub"),
        (Match("BrokerHeartbeat", broker=1), "✗ broker: wanted 1, there was 'the controller'"),
    ):
        assert mockraft.near_misses(of)[0].describe().endswith(why)
    mockraft.reset()


def test_unused_stubs_and_unexpected_requests_are_reported_with_near_misses(mockraft: SyncController) -> None:
    mockraft.strict = True
    unused = mockraft.stub("UnregisterBroker", broker_id=7).drop()
    mockraft.ask(HEARTBEAT)
    mockraft.ask(UnregisterBrokerRequest(broker_id=1))
    with pytest.raises(
        AssertionError, match=r"(?s)stub stub-1 was never used: UnregisterBroker brokerId=7.*✗ brokerId"
    ):
        mockraft.assert_all_stubs_used()
    with pytest.raises(AssertionError, match=r"(?s)was not expected.*✗ brokerId: wanted 7, there was 1"):
        mockraft.assert_all_expected()
    (unexpected,) = mockraft.unmatched()
    (miss,) = mockraft.near_misses(unexpected)
    assert miss.stub is not None
    assert (miss.stub.id, miss.exchange) == (unused.id, unexpected)
    mockraft.reset()
    mockraft.assert_all_stubs_used()
    mockraft.assert_all_expected()
    assert mockraft.strict


def test_kio_entities_do_for_messages(mockraft: SyncController) -> None:
    ready = KioResponse(
        throttle_time=i32Timedelta.parse(timedelta(0)),
        error_code=ErrorCode.none,
        is_caught_up=True,
        is_fenced=False,
        should_shut_down=False,
    )
    mockraft.stub("BrokerHeartbeat").answer(ready)
    asked = KioRequest(
        broker_id=BrokerId(1),
        broker_epoch=i64(1),
        current_metadata_offset=i64(5),
        want_fence=False,
        want_shut_down=False,
    )
    assert mockraft.ask(asked) == ready
    (exchange,) = mockraft.requests("BrokerHeartbeat")
    assert exchange.as_kio() == (asked, ready)


async def test_a_controller_of_another_loop_is_waited_for_with_await(mockraft_async: AwaitedController) -> None:
    mockraft_async.stub("BrokerHeartbeat").once().inject_error("STALE_BROKER_EPOCH")
    waiting = asyncio.ensure_future(mockraft_async.wait_for("BrokerHeartbeat"))
    response = await mockraft_async.ask(HEARTBEAT)
    assert response.error_code == error_codes.STALE_BROKER_EPOCH
    assert len(await waiting) == 1


@pytest.mark.mockraft(brokers=1)
async def test_nothing_that_waits_blocks_the_loop_of_the_test(mockraft_async: AwaitedController) -> None:
    broker = mockraft_async.brokers[1]
    unanswered = mockraft_async.stub("BrokerHeartbeat").drop()
    waits = [
        broker.wait_until(BrokerState.NOT_RUNNING, 60_000),
        mockraft_async.wait_for("Vote"),
        mockraft_async.wait_until(lambda: False),
        mockraft_async.start_broker(2),
        broker.shut_down(60_000),
    ]
    tasks = [asyncio.ensure_future(each) for each in waits]
    while not unanswered.called:  # the loop goes on
        await asyncio.sleep(0)
    assert not any(each.done() for each in tasks)
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await broker.kill()
    assert broker.end_reason == "stop requested"
    mockraft_async.remove(unanswered)
    another = await mockraft_async.start_broker(3)
    await another.shut_down()


async def test_broker_of_the_fixture_is_awaited_beside_an_awaited_controller(
    mockraft_async: AwaitedController, mockraft_broker: Callable[..., Any]
) -> None:
    broker = await mockraft_broker(7, rack="r")
    assert broker.state is BrokerState.RUNNING
    assert [(each.broker_id, each.rack) for each in mockraft_async.state.brokers()] == [(7, "r")]


async def test_controller_of_the_same_loop_is_queried_in_the_same_way() -> None:
    async with Controller() as controller:
        dropped = controller.stub("BrokerHeartbeat").disconnect_on()
        with pytest.raises(DisconnectedError):
            await controller.ask(HEARTBEAT)
        assert len(await controller.wait_for("BrokerHeartbeat")) == 1
        assert dropped.called
        assert controller.state.brokers() == []


async def test_a_quorum_is_scripted_as_one_and_node_by_node() -> None:
    async with Quorum(2) as quorum:
        first, second = quorum.node_ids
        quorum.stub("DescribeCluster", node=second).inject_error("NOT_CONTROLLER")
        assert (await quorum.ask(CLUSTER, node=first)).error_code == 0
        refused = await quorum.ask(CLUSTER, node=second)
        assert refused.error_code == error_codes.NOT_CONTROLLER
        asked = quorum.verify(2, "DescribeCluster")
        assert [exchange.node_id for exchange in asked] == [first, second]
        assert len(quorum.requests("DescribeCluster", node=second)) == 1
        with pytest.raises(ValueError, match="its log cannot begin anew"):
            quorum.reset(state=True)


def test_a_fault_lasts_as_long_as_its_block(mockraft: SyncController) -> None:
    with mockraft.faults.down() as down:
        with pytest.raises(DisconnectedError):
            mockraft.ask(CLUSTER)
        assert [fault.id for fault in mockraft.faults.active] == [down.id]
    assert mockraft.faults.active == []
    assert down.fired > 0
    assert mockraft.ask(CLUSTER).error_code == 0
    mockraft.assert_all_faults_fired()


def test_faults_are_added_by_name_or_json_and_unused_ones_are_listed(mockraft: SyncController) -> None:
    slow = mockraft.faults.add("latency", latency_ms=1, broker_id=9)
    mockraft.faults.add({"id": "cut", "kind": "limit_data", "params": {"bytes": 3}, "enabled": False})
    mockraft.ask(CLUSTER, client_id="somebody")
    assert [fault.id for fault in mockraft.faults.unfired()] == [slow.id, "cut"]
    unfired = r"fault latency-1 never met anything.*\n  broker 9 is not registered; .*\n*.*fault cut"
    with pytest.raises(AssertionError, match=unfired):
        mockraft.assert_all_faults_fired()
    mockraft.faults.remove("cut")
    slow.switch_off()
    slow.switch_on()
    slow.remove()
    mockraft.assert_all_faults_fired()
    assert "latency" in dir(mockraft.faults)
    with pytest.raises(AttributeError, match=r"no kind of fault 'lateness'; did you mean latency\?"):
        mockraft.faults.lateness()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"did you mean latency_ms\?"):
        mockraft.faults.latency(latency=20)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="latencyMs"):
        mockraft.faults.latency(latency_ms="slow")  # type: ignore[arg-type]


def test_faults_are_switched_by_a_plan_on_the_doubles_clock() -> None:
    with Controller.sync(clock="virtual") as controller:
        controller.faults.run([{"at": 100, "duration": 200, "fault": {"kind": "latency", "params": {"latencyMs": 0}}}])
        seen = []
        for _ in range(4):
            seen.append(len(controller.faults.active))
            controller.advance(100)
        assert seen == [0, 1, 1, 0]
        controller.reset()
        assert controller.faults.unfired() == []


def test_the_journal_is_written_as_lines_or_packets(mockraft: SyncController, tmp_path: Path) -> None:
    mockraft.ask(CLUSTER)
    mockraft.write_journal(tmp_path / "journal.jsonl")
    assert json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[0])["api"] == "DescribeCluster"
    mockraft.write_journal(tmp_path / "journal.pcapng")
    assert (tmp_path / "journal.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


@each_row("kind", [Controller, Quorum])
def test_admin_port_opens_the_admin_api(kind: Any) -> None:
    options = {"controllers": 1} if kind is Quorum else {}
    with (
        kind.sync(admin_port=0, **options) as double,
        urllib.request.urlopen(f"{double.admin_url}/v1/health") as result,
    ):
        assert json.load(result)["clusterId"] == double.cluster_id
    with kind.sync() as double, pytest.raises(RuntimeError, match="admin_port=0"):
        assert double.admin_url


def test_a_stub_file_is_begun_with_or_loaded(tmp_path: Path) -> None:
    path = tmp_path / "stubs.json"
    path.write_text(json.dumps({"stubs": [{"match": {"api": "DescribeCluster"}, "actions": ["disconnectOn"]}]}))
    with Controller.sync(stubs=path) as controller, pytest.raises(DisconnectedError):
        controller.ask(CLUSTER)
    with Controller.sync(stubs=[stub("DescribeCluster").named("first")], assert_all_used=False) as controller:
        controller.load_stubs(path)
        assert [each.name for each in controller.stubs] == ["", "first"]
        path.write_text("{")
        with pytest.raises(ValueError, match=r"stubs.json, line 1: not JSON"):
            controller.load_stubs(path)


def test_it_passes_for_another_release(mockraft: SyncController) -> None:
    mockraft.as_version("3.9", {"DescribeCluster": "0-1"})
    offered = {api.api_key: api.max_version for api in mockraft.ask(ApiVersionsRequest(), 0).api_keys}
    assert offered[api_keys.DESCRIBE_CLUSTER] == 1
    assert api_keys.UPDATE_RAFT_VOTER in offered
    mockraft.as_version(None)
    offered = {api.api_key: api.max_version for api in mockraft.ask(ApiVersionsRequest(), 0).api_keys}
    assert offered[api_keys.DESCRIBE_CLUSTER] > 1


def test_controller_is_restarted_and_reset_in_place(mockraft: SyncController, tmp_path: Path) -> None:
    mockraft.start_broker(1).shut_down()
    before = mockraft.bootstrap
    mockraft.state.save(tmp_path / "saved.state")
    mockraft.restart()
    assert [broker.broker_id for broker in mockraft.state.brokers()] == [1]
    mockraft.reset(state=True)
    assert mockraft.state.brokers() == []
    mockraft.load(tmp_path / "saved.state")
    assert [broker.broker_id for broker in mockraft.state.brokers()] == [1]
    assert mockraft.bootstrap == before


def test_answer_function_may_use_the_controller_but_not_wait_for_it(mockraft: SyncController) -> None:
    seen: list[Any] = []

    def answer(request: Any) -> str:
        seen.append((len(mockraft.requests("DescribeCluster")), mockraft.state.brokers()))
        with pytest.raises(RuntimeError, match="cannot wait"):
            mockraft.ask(CLUSTER)
        return "NOT_CONTROLLER"

    mockraft.ask(CLUSTER)
    mockraft.stub("BrokerHeartbeat").answers(answer)
    assert mockraft.ask(HEARTBEAT, timeout_s=5).error_code == error_codes.NOT_CONTROLLER
    assert seen == [(1, [])]


async def test_a_wait_that_was_given_up_does_not_disturb_the_request_that_comes_then() -> None:
    async with Controller() as controller:
        await controller.ask(CLUSTER)
        (asked,) = controller.requests("DescribeCluster")
        waiting = asyncio.create_task(controller.wait_for("DescribeCluster", since=controller.mark()))
        await asyncio.sleep(0)
        waiting.cancel()
        controller.journal.add_exchange(asked)
        with pytest.raises(asyncio.CancelledError):
            await waiting


def test_live_stub_is_a_stub_of_the_controller_and_can_be_copied(mockraft: SyncController) -> None:
    live = mockraft.stub("DescribeCluster")
    live.times(2).inject_error("NOT_CONTROLLER")
    assert isinstance(live, Stub)
    assert live in mockraft.stubs
    assert live is mockraft.stubs[0]
    mockraft.ask(CLUSTER)
    for copied in (copy.copy(live), copy.deepcopy(live)):
        assert (copied, copied.call_count) == (live, 0)
        assert copied.every_time() != live
    mockraft.remove(live)
    assert live.call_count == 1
    mockraft.add(live.once())
    assert mockraft.ask(CLUSTER).error_code == error_codes.NOT_CONTROLLER
    assert mockraft.ask(CLUSTER).error_code == 0


def test_live_stub_selects_requests(mockraft: SyncController) -> None:
    moved = mockraft.stub("BrokerHeartbeat", broker_id=1).inject_error("NOT_CONTROLLER")
    mockraft.ask(CLUSTER)
    mockraft.ask(HEARTBEAT)
    assert [each.api for each in mockraft.verify(1, moved)] == ["BrokerHeartbeat"]
    assert mockraft.wait_for(moved) == mockraft.requests(moved)
    assert mockraft.near_misses(moved)[0].exchange is mockraft.requests(moved)[0]
    with pytest.raises(VerificationError, match="BrokerHeartbeat"):
        mockraft.verify(2, moved)


def test_a_wrong_name_or_argument_is_refused_with_the_right_one(mockraft: SyncController) -> None:
    with pytest.raises(AttributeError, match=r"'delay'; did you mean delay_on\?"):
        mockraft.stub("BrokerHeartbeat").delay(20)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"comes first: verify\(1, 'BrokerRegistration', …\)"):
        mockraft.verify("BrokerRegistration", broker_id=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"did you mean rack\?"):
        mockraft.start_broker(1, rak="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="state='running': it must be a BrokerState"):
        mockraft.start_broker(1).wait_until("running")  # type: ignore[arg-type]
    with pytest.raises(TimeoutError, match="waited 0 s: the condition does not hold"):
        mockraft.wait_until(lambda: mockraft.state.broker(1).fenced, 0)


def test_ask_refuses_an_object_that_is_no_message(mockraft: SyncController) -> None:
    with pytest.raises(TypeError, match="ask takes a request message"):
        mockraft.ask(3)  # type: ignore[call-overload]


def test_near_misses_are_of_the_same_api_if_there_are_enough(mockraft: SyncController) -> None:
    for _ in range(3):
        mockraft.ask(HEARTBEAT)
        mockraft.ask(CLUSTER)
    nearest = mockraft.near_misses(stub("BrokerHeartbeat", broker_id=99), limit=3)
    assert [miss.exchange.api for miss in nearest if isinstance(miss.exchange, Exchange)] == ["BrokerHeartbeat"] * 3
