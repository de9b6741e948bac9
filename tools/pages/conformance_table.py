"""The table of the cases of each area that pass on mockraft and on Kafka, at some levels of metadata.version."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mockraft.conformance import run
from mockraft.conformance.suite import AREAS
from mockraft.conformance.verdicts import Outcome, Run
from mockraft.releases import release
from mockraft.testing.controller import Controller

from tools.on_kafka import TOKEN_KEY, run_on_kafka

NEWEST_LEVEL = max(release().metadata_versions)
LEVELS: dict[int, str] = {
    level: release().metadata_version(level).name for level in (NEWEST_LEVEL, 30, 29, 21, 14, 11, 7)
}
"""The levels of the table, by Kafka's names."""
AT_ONCE = 2


def written_anew() -> str:
    """Run all cases on mockraft and on Kafka's own controller (Java), and return the table; failures are printed."""
    with tempfile.TemporaryDirectory(prefix="mockraft-") as folder:
        sides = {"mockraft": asyncio.run(runs_on_mockraft()), "Kafka": runs_on_kafka(Path(folder))}
    for who, runs in sides.items():
        for level, found in runs.items():
            for verdict in found.failures:
                print(f"{who} at {level}: {verdict.name}: {verdict.reason}", file=sys.stderr)
    return as_markdown(sides["mockraft"], sides["Kafka"])


def as_markdown(mockraft: Mapping[int, Run], kafka: Mapping[int, Run]) -> str:
    """Return the table: cases that pass on mockraft / on Kafka, and the number that applies if it is not all."""
    names = [f"{level} ({name})" for level, name in LEVELS.items()]
    lines = [f"| area | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    for area in (*AREAS, None):
        cells = [f"{_cell(mockraft[level], area)} / {_cell(kafka[level], area)}" for level in LEVELS]
        lines.append(f"| {area or '**all**'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(found: Run, area: str | None) -> str:
    count = found.count(area)
    passed, applying = count[Outcome.PASSED], count[Outcome.PASSED] + count[Outcome.FAILED]
    return str(passed) if passed == applying else f"{passed} of {applying}"


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
