"""`mockraft serve` of each release against the kept run of Kafka's own controller: `controllers.json`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TypedDict

from mockraft import Controller
from mockraft.conformance import Run, baseline, run
from mockraft.conformance.verdicts import Outcome, partings

from tools.on_kafka import SEED, TOKEN_KEY

from . import evidence

EVIDENCE = "controllers.json"


class Row(TypedDict):
    """Cases of the suite at a release: all, those that apply, and the names of those that end otherwise than there."""

    kafka: str
    cases: int
    applying: int
    differing: list[str]
    date: str


def read() -> list[Row]:
    """Return the rows of the evidence."""
    return evidence.read(EVIDENCE)


def keep(row: Row) -> None:
    """Write a row of the evidence."""
    evidence.keep(EVIDENCE, row)


def compare(version: str) -> Row:
    """Run the suite on mockraft's controller of a release, and compare it with the kept run."""

    async def on_mockraft() -> Run:
        async with Controller(release=version, delegation_token_secret_key=TOKEN_KEY) as controller:
            return await run(controller.bootstrap, seed=SEED)

    found = asyncio.run(on_mockraft())
    counts = found.count()
    differing = [each.mine.name for each in partings(found, baseline.read(f"kafka-{version}"))]
    return {
        "kafka": version,
        "cases": len(found.verdicts),
        "applying": len(found.verdicts) - counts[Outcome.NOT_APPLICABLE],
        "differing": differing,
        "date": datetime.now(UTC).date().isoformat(),
    }
