"""Examples for docs/stubs.md."""

from pathlib import Path
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker, stub
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.wire import api_keys


async def test_refuses_registration_twice() -> None:
    async with Controller() as controller:
        refused = controller.add(stub("BrokerRegistration", broker_id=1).times(2).inject_error("INVALID_REGISTRATION"))

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker:
            await broker.wait_until(BrokerState.RUNNING)

        assert refused.call_count == 2
        exchanges = controller.journal.exchanges(api_keys.BROKER_REGISTRATION)
        assert [exchange.response.error_code for exchange in exchanges] == [119, 119, 0]
        assert [exchange.matched for exchange in exchanges] == [refused.id, refused.id, None]


async def test_delays_drops_and_changes_responses() -> None:
    async with Controller() as controller:
        late = controller.add(stub("BrokerHeartbeat", broker_id=1).delay_on(20, jitter_ms=10))
        lost = controller.add(stub("BrokerHeartbeat", broker_id=1).on_call(2).pass_through().drop().disconnect_on())
        controller.add(stub("BrokerHeartbeat", broker_id=1, want_fence=True).once().change(response={"isFenced": True}))

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
        assert (late.called, lost.called) == (True, True)
        assert lost.calls[0].reason == f"dropped, disconnected (stub {lost.id})"


async def test_function_and_list_provide_responses() -> None:
    async with Controller() as controller:

        def by_id(request: Any) -> Any:
            return "INVALID_REGISTRATION" if request.broker_id > 1 else None

        controller.add(stub("BrokerRegistration").answers(by_id))
        controller.add(stub("BrokerHeartbeat").times(3).answers(["NOT_CONTROLLER", {"isFenced": True}, None]))

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
        assert [each.call_count for each in controller.stubs] == [3, 1]


async def test_scenario_with_two_states() -> None:
    async with Controller() as controller:
        moving = stub("BrokerHeartbeat", "BrokerRegistration").inject_error("NOT_CONTROLLER")
        controller.add(moving.in_scenario("failover", requires="Started", then="Moved"))
        controller.add(stub("BrokerHeartbeat", "BrokerRegistration").in_scenario("failover", requires="Moved"))

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
        assert controller.scenarios == {"failover": "Moved"}


async def test_unused_stub_reports_near_misses() -> None:
    async with Controller() as controller:
        unmet = controller.add(stub("BrokerRegistration", broker_id=2, log_dirs__exists=True))

        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, broker_id=1) as broker:
            await broker.wait_until(BrokerState.RUNNING)
        (nearest, *_) = controller.near_misses(unmet)
        assert "✗ brokerId: wanted 2, there was 1" in nearest.describe()


FILE = """
stubs:
  - name: the second registration is late
    match: {api: BrokerRegistration, brokerId: {in: [1, 2, 3]}}
    trigger: {onCall: 2}
    actions: [{delayOn: {ms: 500, jitterMs: 100}}]
  - match:
      api: BrokerHeartbeat
      where: {wantFence: false, currentMetadataOffset: {gte: 5}}
    trigger: {withProbability: 0.1, seed: 7}
    actions:
      - change: {response: {shouldShutDown: true}}
"""


def test_reads_stub_file(tmp_path: Path) -> None:
    path = tmp_path / "stubs.yaml"
    path.write_text(FILE)
    assert [each.actions[0].name for each in read_stub_file(path).stubs] == ["delayOn", "change"]


def test_documentation_quotes_the_stub_file() -> None:
    page = (Path(__file__).parents[2] / "docs" / "stubs.md").read_text()
    assert f"```yaml{FILE}```" in page


def test_misspelled_name_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"where\.wantFance.*did you mean wantFence\?"):
        stub("BrokerHeartbeat", want_fance=True)
