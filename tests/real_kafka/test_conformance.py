"""The cases of the conformance suite on Kafka's own controller and on ours, at each level of the documents' table.

A case that Kafka's controller fails is a wrong case.
"""

import asyncio
from pathlib import Path

import pytest
from mockraft.conformance import Run, baseline
from mockraft.conformance.comparison import partings
from mockraft.conformance.marked_text import marked
from mockraft.conformance.parity_table import LEVELS, as_markdown
from mockraft.conformance_levels import runs_on_kafka, runs_on_mockraft

pytestmark = pytest.mark.real_kafka

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Run]:
    return runs_on_kafka(tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def mockraft() -> dict[int, Run]:
    return asyncio.run(runs_on_mockraft())


@pytest.mark.parametrize("level", LEVELS)
def test_kafkas_own_controller_passes_every_case(kafka: dict[int, Run], level: int) -> None:
    assert [(each.name, each.reason) for each in kafka[level].failures] == []


@pytest.mark.parametrize("level", LEVELS)
def test_mockraft_passes_every_case_but_for_known_differences(mockraft: dict[int, Run], level: int) -> None:
    assert [(each.name, each.reason) for each in mockraft[level].unexplained] == []


def test_the_baseline_is_what_this_run_says(kafka: dict[int, Run]) -> None:
    """`mockraft conformance baseline conformance/baselines/kafka-4.3.1.json` makes it anew."""
    assert partings(kafka[30], baseline.read("kafka-4.3.1")) == []


def test_the_table_in_the_document_is_what_these_runs_say(mockraft: dict[int, Run], kafka: dict[int, Run]) -> None:
    """`mockraft conformance table --write-docs docs` writes it anew."""
    assert marked(DOCUMENT.read_text()) == as_markdown(mockraft, kafka)
