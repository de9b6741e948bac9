"""Presets as a broker meets them on the wire, on and off again; and the page that lists them."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.kafka.child_process import free_port
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.server.stubs.faults.presets import PRESET_KINDS
from mockraft.server.views import LogDirView
from mockraft.testing.options import ControllerOptions
from mockraft.wire import error_codes, uuids
from mockraft.wire.client import KafkaConnection, RequestTimedOutError, connect
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.fetch_request import ReplicaState

from ....fetches import fetch_request, snapshot_request
from ....rows import each_row
from ...state.conftest import directory, registered

ROOT = Path(__file__).parents[4]
LOG_DIRS = [directory(1), directory(1, 2)]


class Broker:
    """Broker 1, registered and unfenced, as it speaks to the controller."""

    def __init__(self, controller: Controller, connection: KafkaConnection) -> None:
        self.controller = controller
        self.connection = connection
        self.epoch = controller.state.broker(1).epoch

    @property
    def end_offset(self) -> int:
        return self.controller.state.quorum().log_end_offset

    async def heartbeat(self, **fields: Any) -> Any:
        said = {"broker_id": 1, "broker_epoch": self.epoch, "current_metadata_offset": self.end_offset}
        return await self.connection.send(BrokerHeartbeatRequest(**{**said, **fields}))

    async def register(self) -> Any:
        return await self.connection.send(BrokerRegistrationRequest(broker_id=1, cluster_id="another"))

    async def fetch(self, offset: int = 4, timeout_ms: int = 5_000) -> Any:
        epoch = self.controller.running.controller.log.last_epoch
        request = fetch_request(offset, epoch, replica_state=ReplicaState(replica_id=1), max_wait_ms=0)
        response = await self.connection.send(request, version=17, timeout_ms=timeout_ms)
        return response if response.error_code else response.responses[0].partitions[0]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Controller(clock=VirtualClock()) as controller:
        state = controller.state
        offset = state.quorum().log_end_offset
        state.append([registered(1, offset)])
        state.unfence(1)
        connection = await connect(controller.host, controller.port, client_id="1")
        yield Broker(controller, connection)
        await connection.close()


class Switch:
    """A fault of a name, switched off again at the end of the block."""

    def __init__(self, broker: Broker, kind: str, **params: Any) -> None:
        self.faults = broker.controller.script.faults
        self.fault = self.faults.add(kind, **params)

    def __enter__(self) -> Any:
        return self.fault

    def __exit__(self, *_: object) -> None:
        self.faults.remove(self.fault.id)


async def test_not_controller_preset_answers_active_only_requests(broker: Broker) -> None:
    with Switch(broker, "not_controller", broker_id=1) as fault:
        assert (await broker.heartbeat()).error_code == error_codes.NOT_CONTROLLER
        assert (await broker.connection.send(EnvelopeRequest())).error_code == error_codes.NOT_CONTROLLER
        assert (await broker.fetch()).records
        assert fault.fired == 2
    assert (await broker.heartbeat()).error_code == 0


async def test_presets_of_one_broker_leave_others_alone(broker: Broker) -> None:
    with Switch(broker, "not_controller", broker_id=2) as fault:
        assert (await broker.heartbeat()).error_code == 0
        assert fault.fired == 0


async def test_wrong_cluster_id_preset_answers_fetches_and_registrations(broker: Broker) -> None:
    with Switch(broker, "inconsistent_cluster_id"):
        assert (await broker.fetch()).error_code == error_codes.INCONSISTENT_CLUSTER_ID
        assert (await broker.register()).error_code == error_codes.INCONSISTENT_CLUSTER_ID
    assert (await broker.fetch()).error_code == 0


async def test_a_controller_that_resigned_leads_again_by_the_clock(broker: Broker) -> None:
    with Switch(broker, "resign"):
        broker.controller.advance(2_000)
    assert broker.controller.state.quorum().epoch > 1


async def test_a_restart_begins_the_next_epoch(broker: Broker) -> None:
    with Switch(broker, "restart") as fault:
        assert fault.fired == 1
    assert broker.controller.state.quorum().epoch == 2


async def test_a_node_is_elected() -> None:
    async with Quorum(3) as quorum:
        leader = await quorum.wait_for_leader()
        other = next(node for node in quorum.node_ids if node != leader)
        with pytest.raises(ValueError, match="node 7 is not running"):
            quorum.script.faults.add("elect", node_id=7)
        quorum.script.faults.add("elect", node_id=other)
        assert quorum.node(other).controller.raft.epoch > 1


async def test_voters_change_and_a_refusal_is_the_error_of_the_fault(tmp_path: Path) -> None:
    options: ControllerOptions = {"data_dir": tmp_path, "port": free_port(in_a_row=3), "assert_all_used": False}
    async with Quorum(3, **options) as quorum:
        faults, state, voter = quorum.script.faults, quorum.state, quorum.node(3002).controller.raft
        await quorum.wait_until(lambda: state.quorum().high_watermark > 1)
        with pytest.raises(ValueError, match="node 3003 is not among the voters"):
            faults.add("remove_voter", node_id=3003)
        with pytest.raises(RuntimeError, match=r"DUPLICATE_VOTER: .*3002"):
            faults.add("add_voter", node_id=3002)
        faults.add("restart", node_id=3002)
        faults.add("lose_disk", node_id=3002)
        assert quorum.node(3002).controller.raft.key != voter.key
        removed = faults.add("remove_voter", node_id=3002)
        await quorum.wait_until(lambda: removed.fired)
        never = faults.add("add_voter", node_id=3002, port=1)
        await quorum.wait_until(lambda: never.error)
        assert (never.fired, never.to_json()["error"]) == (0, never.error)
        assert str(never.error) in str(quorum.complaints()[-1])
        await quorum.kill(3002)
        await quorum.restart(3002)
        assert quorum.node(3002).controller.raft.key != voter.key
    async with Quorum(3, **options) as quorum:
        assert {each.node_id for each in quorum.state.quorum().voters} == {3000, 3001}
        quorum.script.faults.add("lose_disk", node_id=await quorum.wait_for_leader())
        await quorum.wait_until(lambda: quorum.failure == "no controller is active")
    async with Controller() as alone:
        with pytest.raises(ValueError, match="node 3000 cannot lose its log"):
            alone.script.faults.add("lose_disk", node_id=3000)


async def test_a_registration_never_succeeds_with_an_error_or_without_any_answer(broker: Broker) -> None:
    with Switch(broker, "registration_never_succeeds", error="INVALID_REGISTRATION"):
        assert (await broker.register()).error_code == error_codes.INVALID_REGISTRATION
    with Switch(broker, "registration_never_succeeds", error=""), pytest.raises(RequestTimedOutError):
        await broker.connection.send(BrokerRegistrationRequest(broker_id=1), timeout_ms=50)


async def test_a_duplicate_registration_is_refused_as_one(broker: Broker) -> None:
    with Switch(broker, "duplicate_registration"):
        assert (await broker.register()).error_code == error_codes.DUPLICATE_BROKER_REGISTRATION


async def test_heartbeat_storm_sets_only_the_response(broker: Broker) -> None:
    broker.controller.state.fence(1)
    with Switch(broker, "heartbeat_storm"):
        said = await broker.heartbeat()
        assert (said.is_caught_up, said.is_fenced) == (False, False)
    assert not broker.controller.state.broker(1).fenced


async def test_never_caught_up_broker_stays_fenced(broker: Broker) -> None:
    broker.controller.state.fence(1)
    with Switch(broker, "never_caught_up", broker_id=1):
        said = await broker.heartbeat()
        assert (said.is_caught_up, said.is_fenced) == (False, True)
    assert not (await broker.heartbeat()).is_fenced


async def test_a_stale_epoch_lets_the_session_run_out(broker: Broker) -> None:
    with Switch(broker, "stale_broker_epoch", broker_id=1):
        assert (await broker.heartbeat()).error_code == error_codes.STALE_BROKER_EPOCH
        broker.controller.advance(11_000)
        assert broker.controller.state.broker(1).fenced
    assert not (await broker.heartbeat()).is_fenced


async def test_an_expired_session_is_renewed_by_a_heartbeat(broker: Broker) -> None:
    with Switch(broker, "expire_session", broker_id=1):
        assert broker.controller.state.broker(1).fenced
        assert not (await broker.heartbeat()).is_fenced


async def test_fenced_broker_stays_fenced_while_it_wants_to_be(broker: Broker) -> None:
    with Switch(broker, "fence", broker_id=1):
        assert broker.controller.state.broker(1).fenced
        assert (await broker.heartbeat(want_fence=False)).is_fenced
    assert not (await broker.heartbeat(want_fence=False)).is_fenced


async def test_preset_counts_its_own_hits_and_its_stubs_do_not(broker: Broker) -> None:
    with Switch(broker, "fence", broker_id=1) as fence, Switch(broker, "throttle") as throttle:
        script = broker.controller.script
        assert script.stubs.unused() == []
        assert (fence.fired, script.faults.unfired()) == (1, [throttle])


async def test_a_broker_may_be_fenced_before_any_registers_and_none_that_is_missing_later(broker: Broker) -> None:
    with pytest.raises(ValueError, match=r"broker 4 is not registered; there are \[1\]"):
        Switch(broker, "fence", broker_id=4)
    assert broker.controller.stubs == []
    async with Controller(clock=VirtualClock(), assert_all_used=False) as controller:
        controller.script.faults.add("fence", broker_id=4)
        assert [stub.match.broker_id for stub in controller.stubs] == [4]


async def test_broker_is_unfenced_without_request(broker: Broker) -> None:
    broker.controller.state.fence(1)
    with Switch(broker, "unfence", broker_id=1):
        assert not broker.controller.state.broker(1).fenced


async def test_lost_heartbeats_keep_no_session(broker: Broker) -> None:
    with Switch(broker, "lost_heartbeats", broker_id=1) as lost:
        contact = broker.controller.state.broker(1).last_contact_ms
        with pytest.raises(RequestTimedOutError):
            await broker.connection.send(BrokerHeartbeatRequest(broker_id=1), timeout_ms=50)
        assert (broker.controller.state.broker(1).last_contact_ms, lost.fired) == (contact, 1)


async def test_broker_is_granted_or_denied_shutdown(broker: Broker) -> None:
    with Switch(broker, "should_shut_down"):
        assert (await broker.heartbeat()).should_shut_down
    with Switch(broker, "shutdown_never_granted"):
        assert not (await broker.heartbeat(want_shut_down=True)).should_shut_down
    assert (await broker.heartbeat(want_shut_down=True)).should_shut_down


async def test_a_log_dir_fails_and_is_back(broker: Broker) -> None:
    first, second = (uuids.text_of(each) for each in LOG_DIRS)
    state = broker.controller.state
    with Switch(broker, "fail_log_dir", broker_id=1):
        assert set(state.broker(1).log_dirs) == {LogDirView(first, "offline"), LogDirView(second, "online")}
        with pytest.raises(ValueError, match="is the only one of broker 1"):
            broker.controller.script.faults.add("fail_log_dir", broker_id=1)
    assert set(state.broker(1).log_dirs) == {LogDirView(first, "online"), LogDirView(second, "online")}


async def test_a_dead_dir_is_not_acknowledged(broker: Broker) -> None:
    with Switch(broker, "unacknowledged_dead_dir", broker_id=1):
        assert (await broker.heartbeat()).error_code == 0
        result = await broker.heartbeat(offline_log_dirs=[LOG_DIRS[0]])
        assert result.error_code == error_codes.UNKNOWN_SERVER_ERROR
    assert (await broker.heartbeat(offline_log_dirs=[LOG_DIRS[0]])).error_code == 0


async def test_heartbeats_are_throttled(broker: Broker) -> None:
    with Switch(broker, "throttle", throttle_ms=700):
        assert (await broker.heartbeat()).throttle_time_ms == 700
    assert (await broker.heartbeat()).throttle_time_ms == 0


async def test_fetches_stall(broker: Broker) -> None:
    with Switch(broker, "stall_metadata_fetch", broker_id=1), pytest.raises(RequestTimedOutError):
        await broker.fetch(timeout_ms=50)


async def test_frozen_log_keeps_its_end_and_continues_afterwards(broker: Broker) -> None:
    state = broker.controller.state
    with Switch(broker, "freeze_metadata_log", broker_id=1):
        frozen_at = broker.end_offset
        log = broker.controller.running.controller.log
        before = log.read(0, 1 << 20)
        state.append([{"type": "NoOpRecord", "record": {}}])
        answer = await broker.fetch(0)
        assert (answer.high_watermark, answer.records) == (frozen_at, before)
    answer = await broker.fetch(0)
    assert (answer.high_watermark, answer.records) == (frozen_at + 1, log.read(0, 1 << 20))


async def test_broker_keeps_records_of_a_frozen_log_and_is_answered_after_the_wait(broker: Broker) -> None:
    with Switch(broker, "freeze_metadata_log", broker_id=1):
        broker.controller.state.append([{"type": "NoOpRecord", "record": {}}] * 2)
        offset = broker.end_offset - 1
        fetching = asyncio.ensure_future(broker.fetch(offset))
        while not broker.controller.running.node.parked:
            await asyncio.sleep(0)
        broker.controller.advance(500)
        answer = await fetching
        assert (answer.high_watermark, answer.records) == (offset, b"")


async def test_a_divergence_lies_below_the_high_watermark(broker: Broker) -> None:
    with Switch(broker, "diverge", broker_id=1, records=3):
        answer = await broker.fetch()
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (1, answer.high_watermark - 3)
    assert (await broker.fetch()).diverging_epoch.epoch == -1


async def test_a_snapshot_is_not_found(broker: Broker) -> None:
    with Switch(broker, "snapshot_not_found"):
        snapshot = (await broker.fetch(0)).snapshot_id
        assert snapshot.end_offset == broker.end_offset
        request = snapshot_request(SnapshotId(snapshot.end_offset, snapshot.epoch))
        answer = (await broker.connection.send(request)).topics[0].partitions[0]
        assert (answer.error_code, answer.unaligned_records) == (error_codes.SNAPSHOT_NOT_FOUND, b"")
    answer = (await broker.connection.send(request)).topics[0].partitions[0]
    assert answer.unaligned_records


async def test_presets_add_up_and_a_reset_takes_all_of_them_away(broker: Broker) -> None:
    faults = broker.controller.script.faults
    faults.add("throttle", throttle_ms=700)
    faults.add("stale_broker_epoch", broker_id=1)
    assert (await broker.heartbeat()).error_code == error_codes.STALE_BROKER_EPOCH
    broker.controller.reset()
    assert broker.controller.script.stubs.stubs == []
    assert (await broker.heartbeat()).error_code == 0


def table() -> str:
    """The table of docs/how-to/faults/presets.md."""
    lines = ["| Preset | What the controller does | What a real broker does |", "|---|---|---|"]
    for kind in PRESET_KINDS:
        parameters = ", ".join(
            each.name if each.to_json()["required"] else f"{each.name}={each.default!r}" for each in kind.parameters
        )
        file, _ = kind.proof.split("::")
        shown = f"([test](../../../tests/real_kafka/presets/{file}))"
        lines.append(f"| `{kind.name}({parameters})` | {kind.summary} | {kind.reaction} {shown} |")
    return "\n".join(lines)


def test_the_page_lists_every_preset_as_it_is() -> None:
    assert table() in (ROOT / "docs" / "how-to" / "faults" / "presets.md").read_text()


@each_row("kind", PRESET_KINDS)
def test_every_preset_has_a_test_with_a_real_broker(kind: Any) -> None:
    file, name = kind.proof.split("::")
    text = (ROOT / "tests" / "real_kafka" / "presets" / file).read_text()
    assert re.search(rf"^def {name}\(", text, re.MULTILINE)
    assert f'switched_on("{kind.name}"' in text[text.index(name) :]


def test_every_preset_is_tried_here() -> None:
    here = Path(__file__).read_text()
    assert [kind.name for kind in PRESET_KINDS if f'"{kind.name}"' not in here] == []


async def test_presets_that_a_quorum_begins_with_are_in_force_once_it_has_a_leader() -> None:
    quorum = Quorum(2, assert_all_used=False)
    faults = quorum.script.faults
    added = [faults.add("inconsistent_cluster_id"), faults.add("fence", broker_id=1)]
    async with quorum:
        assert [fault.error for fault in added] == [None, None]
        assert len(quorum.script.stubs.stubs) == 2
