"""Example for docs/capture-and-replay.md: capture a broker's start through a proxy and replay it."""

from pathlib import Path

from mockraft import Controller, SimulatedBroker
from mockraft.brokers.lifecycle import BrokerState
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recording import Recording
from mockraft.spark_replay.recording_proxy import RecordingProxy
from mockraft.spark_replay.regression.replay import replay
from mockraft.spark_replay.regression.summary import report


async def test_captures_and_replays_traffic(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    async with (
        Controller() as controller,
        RecordingProxy(Recording(path), [Endpoint(controller.host, controller.port)]) as proxy,
    ):
        broker = SimulatedBroker.joining(proxy.bootstrap, controller.cluster_id, 1, serve_clients=False)
        async with broker:
            await broker.wait_until(BrokerState.RUNNING)

    async with Controller() as controller:
        replayed = await replay(read_exchanges(path), controller.host, controller.port)
        assert report(replayed).findings == []
    assert len(replayed.outcomes) > 5
