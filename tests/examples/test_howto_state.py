"""Examples for docs/state.md."""

from pathlib import Path

from mockraft import Controller
from mockraft.wire.json_form import Json
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord


async def test_reads_state() -> None:
    async with Controller(brokers=2) as controller:
        state = controller.state

        assert [broker.broker_id for broker in state.brokers() if not broker.fenced] == [1, 2]
        assert state.features()["metadata.version"] == 30
        assert state.quorum().leader_id == controller.node_id

        records = [line.record for line in state.metadata_log()]
        unfenced = [record for record in records if isinstance(record, BrokerRegistrationChangeRecord)]
        assert unfenced[-1].fenced == -1


async def test_commands_write_records() -> None:
    async with Controller(brokers=2) as controller:
        state = controller.state
        state.fence(2)
        assert state.broker(2).fenced
        change = state.metadata_log(-1)[0].record
        assert isinstance(change, BrokerRegistrationChangeRecord)
        assert change.broker_id == 2

        retention: Json = {"resourceType": 4, "resourceName": "", "name": "log.retention.ms", "value": "60000"}
        (line,) = state.append([{"type": "ConfigRecord", "record": retention}])
        assert state.metadata_log(line.offset)[0].type == "ConfigRecord"


async def test_saves_and_loads_state(tmp_path: Path) -> None:
    async with Controller(brokers=3) as controller:
        controller.state.unregister(3)
        saved = controller.state.save(tmp_path / "two-brokers")

    async with Controller(state=saved) as controller:
        assert [broker.broker_id for broker in controller.state.brokers()] == [1, 2]


async def test_virtual_clock_expires_a_session(tmp_path: Path) -> None:
    async with Controller(brokers=1) as controller:
        saved = controller.state.save(tmp_path / "one-broker")

    async with Controller(state=saved, clock="virtual", session_timeout_ms=9_000) as controller:
        assert not controller.state.broker(1).fenced
        controller.advance(9_000 + 9_000 // 8 + 1)
        assert controller.state.broker(1).fenced
