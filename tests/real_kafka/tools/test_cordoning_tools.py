"""Kafka's own tools cordon the directories of a simulated broker, and see that they are (KIP-1066)."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller
from mockraft.kafka.child_process import KafkaProcessError, wait_until
from mockraft.kafka.tools import KafkaTool
from mockraft.wire.client import connect
from mockraft.wire.connection import endpoint_of
from mockraft.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest

pytestmark = pytest.mark.real_kafka

BROKER = ("--entity-type", "brokers", "--entity-name", "1")
CONFIG = "cordoned.log.dirs"


async def described(bootstrap: str) -> dict[str, bool]:
    """Cordoned state in DescribeLogDirs v5, by path."""
    host, port = endpoint_of(bootstrap)
    connection = await connect(host, port)
    response = await connection.send(DescribeLogDirsRequest(topics=None), version=5)
    await connection.close()
    return {each.log_dir: each.is_cordoned for each in response.results}


def test_kafkas_tools_cordon_describe_and_uncordon(tmp_path: Path) -> None:
    d1, d2 = str(tmp_path / "d1"), str(tmp_path / "d2")
    with Controller.sync() as controller:
        broker = controller.start_broker(1, log_dirs=[d1, d2])
        servers = ("--bootstrap-server", broker.bootstrap_servers)

        def configs(*arguments: str) -> str:
            return KafkaTool("kafka-configs").run(*servers, *BROKER, *arguments)

        def cordoned() -> list[str]:
            return [path for path, view in broker.log_dirs.items() if view.is_cordoned]

        def told_by_kafka_log_dirs() -> list[str]:
            result = json.loads(KafkaTool("kafka-log-dirs").run(*servers, "--describe").splitlines()[-1])
            assert not any("isCordoned" in each for each in result["brokers"][0]["logDirs"]), (
                "4.3.1's tool does not say"
            )
            return [each["logDir"] for each in result["brokers"][0]["logDirs"]]

        configs("--alter", "--add-config", f"{CONFIG}={d1}")
        wait_until(lambda: cordoned() == [d1], 60, "the directory is cordoned")
        assert sorted(told_by_kafka_log_dirs()) == [d1, d2]
        assert asyncio.run(described(broker.bootstrap_servers)) == {d1: True, d2: False}
        (line,) = re.findall(rf"{CONFIG}=.*", configs("--describe"))
        synonyms = f"{{DYNAMIC_BROKER_CONFIG:{CONFIG}={d1}, DEFAULT_CONFIG:{CONFIG}=}}"
        assert line == f"{CONFIG}={d1} sensitive=false synonyms={synonyms}"

        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("kept-out", 4, 1)])["kept-out"].result(30)
        assert broker.log_dirs[d1].replicas == ()
        assert broker.log_dirs[d2].replicas == tuple(f"kept-out-{n}" for n in range(4))

        with pytest.raises(KafkaProcessError, match=r"must be present in log\.dirs or log\.dir"):
            configs("--alter", "--add-config", f"{CONFIG}=/nowhere")

        configs("--alter", "--delete-config", CONFIG)
        wait_until(lambda: cordoned() == [], 60, "no directory is cordoned")
        assert asyncio.run(described(broker.bootstrap_servers)) == {d1: False, d2: False}
