"""All conformance cases at each level of metadata.version, on mockraft and on Kafka's own controller."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mockraft.conformance import Run, run
from mockraft.conformance.documents.parity_table import LEVELS
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.testing.controller import Controller

AT_ONCE = 2
TOKEN_KEY = "a secret of these tests"
SEED = 1


async def runs_on_mockraft() -> dict[int, Run]:
    """By level; every controller is new."""
    places = asyncio.Semaphore(AT_ONCE)

    async def at(level: int) -> Run:
        async with places, Controller(metadata_version=level, delegation_token_secret_key=TOKEN_KEY) as controller:
            return await run(controller.bootstrap)

    return dict(zip(LEVELS, await asyncio.gather(*map(at, LEVELS)), strict=True))


def runs_on_kafka(directory: Path) -> dict[int, Run]:
    """By level; every controller has a folder of its own below `directory`.

    Raises KafkaProcessError when one does not start, CannotConnectError when it does not answer.
    """

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda level: run_on_kafka(directory / str(level), LEVELS[level]), LEVELS)
        return dict(zip(LEVELS, found, strict=True))


def run_on_kafka(
    directory: Path, release_version: str | None = None, *, version: str = KAFKA_VERSION, observe: bool = False
) -> Run:
    """Run all cases on a new process of a Kafka version with its folder in `directory`; it is ended.

    `release_version` is its metadata.version, None the newest; `observe` is that of `run`. Raises as `runs_on_kafka`.
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
