"""KAFKA-20901: a directory with a relative path can be cordoned, and is not."""

import os
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, KafkaProcessError, KafkaTool


def test_cordoned_directory_with_a_relative_path_gets_replicas(tmp_path: Path) -> None:
    disks = os.path.relpath(tmp_path / "disks")
    relative = {"log.dirs": f"{disks}/d0,{disks}/d1", "cordoned.log.dirs": f"{disks}/d1"}
    absolute = {key: value.replace(disks, f"{tmp_path}/others") for key, value in relative.items()}
    with Controller.sync() as controller:
        cluster = (controller.cluster_id, controller.bootstrap)
        with KafkaBroker(1, tmp_path / "relative", *cluster, properties=relative) as broker:
            broker.wait_until_running()
            states = {log_dir.state for log_dir in controller.state.broker(1).log_dirs}
            assert states == {"online"}, "the heartbeats name no cordoned directory"
            controller.state.create_topic("orders", partitions=4)
            controller.wait_until(lambda: list((tmp_path / "disks" / "d1").glob("orders-*")))

            setting = f"cordoned.log.dirs={tmp_path}/disks/d1"
            alter = ("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", setting)
            with pytest.raises(KafkaProcessError, match=r"must be present in log.dirs or log.dir. Missing"):
                KafkaTool("kafka-configs").run("--bootstrap-server", broker.bootstrap, *alter)

        with KafkaBroker(2, tmp_path / "absolute", *cluster, properties=absolute) as broker:
            broker.wait_until_running()
            controller.wait_until(lambda: "cordoned" in {each.state for each in controller.state.broker(2).log_dirs})
