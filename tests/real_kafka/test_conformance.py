"""The cases of the conformance suite on Kafka's own controller and on ours, at each level of the documents' table.

A case that Kafka's controller fails is a wrong case.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.commands.conformance.levels import TOKEN_KEY, run_on_kafka, runs_on_kafka, runs_on_mockraft
from mockraft.conformance import Run, baseline, run
from mockraft.conformance.comparison import partings
from mockraft.conformance.marked_text import marked
from mockraft.conformance.parity_table import LEVELS, as_markdown

from ..budgets import SOAKS, soak

pytestmark = pytest.mark.real_kafka

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


IN_TEST = (30, 7)
"""The levels of `make test`: the newest and the oldest."""
RUN_LEVELS = [level if level in IN_TEST else pytest.param(level, marks=soak) for level in LEVELS]
AT_ONCE = 2


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Run]:
    folder = tmp_path_factory.mktemp("kafka")
    if SOAKS:
        return runs_on_kafka(folder)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda level: run_on_kafka(folder / str(level), level), IN_TEST)
        return dict(zip(IN_TEST, found, strict=True))


@pytest.fixture(scope="module")
def mockraft() -> dict[int, Run]:
    if SOAKS:
        return asyncio.run(runs_on_mockraft())

    async def at(level: int) -> Run:
        async with Controller(metadata_version=level, delegation_token_secret_key=TOKEN_KEY) as controller:
            return await run(controller.bootstrap)

    async def all_levels() -> list[Run]:
        return await asyncio.gather(*map(at, IN_TEST))

    return dict(zip(IN_TEST, asyncio.run(all_levels()), strict=True))


@pytest.mark.parametrize("level", RUN_LEVELS)
def test_kafkas_own_controller_passes_every_case(kafka: dict[int, Run], level: int) -> None:
    assert [(each.name, each.reason) for each in kafka[level].failures] == []


@pytest.mark.parametrize("level", RUN_LEVELS)
def test_mockraft_passes_every_case_except_known_differences(mockraft: dict[int, Run], level: int) -> None:
    assert [(each.name, each.reason) for each in mockraft[level].unexplained] == []


def test_baseline_equals_this_run(kafka: dict[int, Run]) -> None:
    """`mockraft conformance baseline conformance/baselines/kafka-4.3.1.json` makes it anew."""
    assert partings(kafka[30], baseline.read("kafka-4.3.1")) == []


@soak
def test_table_in_the_document_equals_these_runs(mockraft: dict[int, Run], kafka: dict[int, Run]) -> None:
    """`mockraft conformance table --write-docs docs` writes it anew."""
    assert marked(DOCUMENT.read_text()) == as_markdown(mockraft, kafka)
