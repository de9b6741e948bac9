"""One broker id, one set of directories: a simulated broker and a real one take turns on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.log_dirs.log_dir import CLEAN_SHUTDOWN
from mockraft.kafka.processes import KafkaBroker

from ..clients import consume, create_topic, produce

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize("leaving", ["shut_down", "kill"])
def test_acknowledged_records_are_served_by_the_successor(tmp_path: Path, leaving: str) -> None:
    with Controller.sync(session_timeout_ms=3000) as controller:
        real = KafkaBroker(1, tmp_path, controller.cluster_id, controller.bootstrap)
        written: list[str] = []

        def simulated(turn: str, *, is_first: bool = False) -> None:
            with SimulatedBroker.sync(
                controller.bootstrap,
                controller.cluster_id,
                1,
                log_dirs=real.log_dirs,
                metadata_log_dir=real.metadata_log_dir,
                port=real.port,
                format_missing=is_first,
            ) as broker:
                broker.wait_until(BrokerState.RUNNING)
                if is_first:
                    create_topic(real.bootstrap, "turns", partitions=3)
                written.extend(produce(real.bootstrap, "turns", [f"{turn}-{number}" for number in range(300)]))
                assert sorted(consume(real.bootstrap, "turns")) == sorted(written)
                getattr(broker, leaving)()
            marks = [(path / CLEAN_SHUTDOWN).exists() for path in real.log_dirs]
            assert marks == [leaving == "shut_down"] * 2

        simulated("simulated", is_first=True)
        try:
            real.start()
            real.wait_until_running()
            assert sorted(consume(real.bootstrap, "turns")) == sorted(written)
            written += produce(
                real.bootstrap, "turns", [f"real-{number}" for number in range(300)], compression_type="zstd"
            )
            real.kill() if leaving == "kill" else real.stop()
        finally:
            real.kill()
        simulated("simulated again")
