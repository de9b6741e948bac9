"""`docker/compose.yaml`: real brokers on mockraft in containers, for clients on the host."""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft.kafka.child_process import free_port
from mockraft.kafka.jars import KAFKA_VERSION, jars_directory, java

from .conftest import ROOT, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

HERE = Path(__file__).parent
FILES = ("--file", str(ROOT / "docker" / "compose.yaml"), "--file", str(HERE / "compose.jars.yaml"))


@pytest.fixture
def bootstrap_servers(image: str, base_image: str) -> Iterator[str]:
    """The two brokers of the compose file, from jars in place of Kafka's image."""
    ports = {name: str(free_port()) for name in ("ADMIN_PORT", "BROKER_1_PORT", "BROKER_2_PORT")}
    java_directory = Path(os.path.realpath(java())).parents[1]
    environment = {
        "MOCKRAFT_IMAGE": image,
        "KAFKA_IMAGE": base_image,
        "KAFKA_JARS": str(jars_directory(KAFKA_VERSION)),
        "BROKER_SCRIPT": str(HERE / "broker.sh"),
        "JAVA_DIRECTORY": str(java_directory),
        # Debian's Java has links to its configuration.
        "JAVA_CONFIGURATION": os.path.dirname(os.path.realpath(java_directory / "conf" / "logging.properties")),
        **ports,
    }
    compose = ("docker-compose", "--project-name", f"mockraft-{uuid.uuid4().hex[:8]}", *FILES)
    run(*compose, "up", "--detach", "--no-build", **environment)
    yield f"127.0.0.1:{ports['BROKER_1_PORT']},127.0.0.1:{ports['BROKER_2_PORT']}"
    sys.stdout.write(run(*compose, "logs", "--no-color", **environment)[-20_000:])
    run(*compose, "down", "--timeout", "3", "--volumes", **environment)


def test_a_client_on_the_host_uses_its_brokers(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for done in admin.create_topics([NewTopic("t", 4, 1)], operation_timeout=60, request_timeout=90).values():
        done.result(90)
    assert {broker.port for broker in admin.list_topics(timeout=30).brokers.values()} <= {
        int(port) for port in re.findall(r":(\d+)", bootstrap_servers)
    }
    acknowledged: list[int | None] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for number in range(100):
        producer.produce("t", str(number), on_delivery=lambda error, message: acknowledged.append(message.offset()))
    assert producer.flush(60) == 0
    assert len(acknowledged) == 100
