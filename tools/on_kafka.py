"""All conformance cases on Kafka's own controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mockraft.conformance import Run, run
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaController, random_uuid

TOKEN_KEY = "a secret of these tests"
SEED = 1


def run_on_kafka(
    directory: Path, release_version: str | None = None, *, version: str = KAFKA_VERSION, observe: bool = False
) -> Run:
    """Run all cases on a new process of a Kafka version with its folder in `directory`; it is ended.

    `release_version` is its metadata.version, None the newest; `observe` is that of `run`. Raises
    KafkaProcessError when it does not start, CannotConnectError when it does not answer.
    """
    properties = {"delegation.token.secret.key": TOKEN_KEY}
    controller = KafkaController(
        directory, random_uuid(), version=version, release_version=release_version, properties=properties
    )
    controller.format()
    controller.start()
    try:
        controller.wait_until_running()
        return asyncio.run(run(controller.bootstrap, controller.cluster_id, seed=SEED, observe=observe))
    finally:
        controller.kill()
