"""All conformance cases on Kafka's own controller."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

from mockraft.conformance import Run, run
from mockraft.conformance.case import Case
from mockraft.conformance.exchanges import masked
from mockraft.conformance.identities import Identities, RunIds
from mockraft.conformance.log import Log
from mockraft.conformance.requests import Tree
from mockraft.conformance.runner import CASE_TIMEOUT_S
from mockraft.conformance.suite import all_cases
from mockraft.conformance.target import Target, look_up
from mockraft.conformance.world import World
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.releases import Release, release

TOKEN_KEY = "a secret of these tests"
SEED = 1


def run_on_kafka(
    directory: Path, release_version: str | None = None, *, version: str = KAFKA_VERSION, observe: bool = False
) -> Run:
    """Run all cases on a new process of a Kafka version with its folder in `directory`; it is ended.

    `release_version` is its metadata.version, None the newest. With `observe` also the cases that do not apply are
    tried at the end, for their exchanges only. Raises KafkaProcessError when it does not start, CannotConnectError when
    it does not answer.
    """
    properties = {"delegation.token.secret.key": TOKEN_KEY}
    controller = KafkaController(
        directory, random_uuid(), version=version, release_version=release_version, properties=properties
    )
    controller.format()
    controller.start()
    try:
        controller.wait_until_running()
        return asyncio.run(_run(controller, observe))
    finally:
        controller.kill()


def _known(version: str) -> Release | None:
    """Return the release of a version, None for one that mockraft does not know."""
    try:
        return release(version)
    except ValueError:
        return None


async def _run(controller: KafkaController, observe: bool) -> Run:
    target = await look_up(controller.bootstrap, controller.cluster_id, _known(controller.version))
    found = await run(target, seed=SEED)
    if observe:
        verdicts = {verdict.name: verdict for verdict in found.verdicts}
        identities, log = RunIds(random.Random(SEED + 1)), Log(target)
        await log.catch_up()
        for number, case in enumerate(all_cases()):
            if case.misfit(target) and not case.disruptive:
                ids = Identities(identities, number)
                verdicts[case.name].exchanges = await _exchanges(target, log, ids, case)
        await log.close()
    return found


async def _exchanges(target: Target, log: Log, identities: Identities, case: Case) -> list[Tree]:
    """Return the exchanges of a case that does not apply, up to the first answer that it does not expect."""
    world = World(target, log, identities, alone=case.alone)
    with suppress(Exception):
        async with asyncio.timeout(CASE_TIMEOUT_S):
            await world.skip_records()
            await case.trial(world)
    await world.close()
    return masked(world.story, target, identities)
