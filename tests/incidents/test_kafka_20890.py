"""KAFKA-20890: a dynamic setting of a broker is lost in its restart, and still shown."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, KafkaTool
from mockraft.wire.records.config_record import ConfigRecord

BROKER = 4


@pytest.mark.parametrize(("threads", "in_force"), [("4", "1"), ("2", "2")])
def test_thread_count_more_than_twice_the_static_one_is_refused_at_the_start(
    tmp_path: Path, threads: str, in_force: str
) -> None:
    describe = ("--describe", "--entity-type", "brokers", "--entity-name", "1")
    with Controller.sync() as controller:
        setting = ConfigRecord(resource_type=BROKER, resource_name="1", name="num.network.threads", value=threads)
        controller.state.append([setting])
        cluster = (controller.cluster_id, controller.bootstrap)
        with KafkaBroker(1, tmp_path, *cluster, properties={"num.network.threads": "1"}) as broker:
            broker.wait_until_running()
            described = KafkaTool("kafka-configs").run("--bootstrap-server", broker.bootstrap, *describe)
            assert f"num.network.threads={in_force} sensitive=false" in described
            assert f"DYNAMIC_BROKER_CONFIG:num.network.threads={threads}" in described
            assert ("should not be greater than double the current value 1" in broker.log) is (threads != in_force)
