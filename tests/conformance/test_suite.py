"""The suite itself: names, areas, sources, the levels of each case, and how cases clean up."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft import ApiName, Controller, Stub, conformance, stub
from mockraft.cli.conformance.command import ABOUT
from mockraft.conformance import Outcome, Run, baseline, world
from mockraft.conformance.case import ELR, Rank
from mockraft.conformance.reports.summary import Level
from mockraft.conformance.suite import AREAS, all_cases
from mockraft.conformance.target import Target
from mockraft.conformance.verdicts import partings
from mockraft.releases import METADATA_VERSION, release

from tools.pages.conformance_table import LEVELS
from tools.pages.marked_text import marked, replace_marked

from ..budgets import soak
from ..rows import each_row

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "checks" / "conformance.md"
ELR_SINCE = 26


def target(level: int) -> Target:
    levels = {METADATA_VERSION: level, ELR: int(level >= ELR_SINCE)}
    finalized = {name: each for name, each in levels.items() if each}
    return Target("h", 1, supported_features=release().feature_ranges(), finalized_features=finalized)


def test_there_are_many_cases_and_each_area_has_some() -> None:
    cases = all_cases()
    assert len(cases) >= 250
    assert set(AREAS) == {case.area for case in cases}
    assert len({case.name for case in cases}) == len(cases)
    assert {case.rank for case in cases} == set(Rank)
    assert [
        case.name for case in cases if not case.source or (not case.name[0].islower() and case.name[:2].islower())
    ] == []


def column(table: str, side: int) -> dict[str, list[str]]:
    """Parse one side (0: mockraft, 1: Kafka) of the table: area → its cells."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: [cell.split(" / ")[side] for cell in row[1:]] for row in rows if len(row) > 1}


def test_the_documents_table_has_every_case_that_holds_at_its_level() -> None:
    table = marked(DOCUMENT.read_text())
    holding = {
        level: Counter(case.area for case in all_cases() if not case.misfit(target(level)) and not case.disruptive)
        for level in LEVELS
    }
    for side in (0, 1):
        cells = column(table, side)
        assert set(cells) == {*AREAS, "**all**"}
        for area in AREAS:
            applying = [int(cell.rpartition(" of ")[2]) for cell in cells[area]]
            assert applying == [holding[level][area] for level in LEVELS], area


@each_row(
    ("level", "reason"),
    [(29, "holds from 30; metadata.version is 29"), (30, None), (7, "holds from 30; metadata.version is 7")],
)
def test_misfit_returns_the_reason(level: int, reason: str | None) -> None:
    case = next(case for case in all_cases() if case.since == 30 and case.elr is None)
    assert case.misfit(target(level)) == reason


def test_only_the_marked_part_is_rewritten() -> None:
    document = "a\n<!-- from here on: x -->\nold\n<!-- up to here -->\nb\n"
    written = replace_marked(document, "new \\1\n")
    assert written == "a\n<!-- from here on: x -->\n\nnew \\1\n\n<!-- up to here -->\nb\n"
    assert marked(written) == "new \\1\n"
    for do in (marked, lambda text: replace_marked(text, "")):
        with pytest.raises(ValueError, match="no marks"):
            do("no marks here")


def test_levels_contain_each_other() -> None:
    core, full, quorum = ({case.name for case in all_cases() if level.has(case)} for level in Level)
    assert set() < core < full < quorum == {case.name for case in all_cases()}
    assert {case.area for case in all_cases() if case.name in quorum - full} == {"quorum"}
    assert {case.rank for case in all_cases() if case.name in core} == {Rank.MUST}


def test_help_and_page_have_the_meanings_of_the_levels() -> None:
    page = DOCUMENT.read_text()
    for level in Level:
        assert f"  {level:<7} {level.meaning}\n" in ABOUT
        assert f"| {level} | {level.meaning} |" in page


APIS: tuple[ApiName, ...] = ("UnregisterBroker", "DeleteTopics")
CLEANED_AREAS = {"registration", "heartbeats", "topics", "isr", "features", "cluster"}
LACKED = tuple(f"the controller does not offer {api}" for api in APIS)
Refusing = Callable[[Stub], Stub]


def fails(found: Run) -> list[tuple[str, str]]:
    """The failures whose last request is not of one of the APIs."""
    asked = {each.name: str(each.detail["story"][-1].get("api")).partition(" ")[0] for each in found.failures}
    return [(each.name, each.reason) for each in found.failures if asked[each.name] not in APIS]


async def test_a_controller_without_the_apis_is_judged_on_the_rest() -> None:
    areas = {*CLEANED_AREAS, "placement", "topic deletion"}
    cases = [case for case in all_cases() if case.area in areas and not case.disruptive]
    offered: dict[str, object] = dict.fromkeys(APIS, "off")
    async with Controller(release="4.4", api_versions=offered, delegation_token_secret_key="a key") as controller:
        found = await conformance.run(controller.bootstrap, cases=cases)
        brokers = controller.running.controller.image.cluster.brokers.values()
        assert len(brokers) > 100
        assert [each.broker_id for each in brokers if not each.fenced] == []
    assert [(each.name, each.reason) for each in found.failures] == []
    unlike_kafka = [each.mine for each in partings(found, baseline.read("kafka-4.4.0"))]
    assert {each.outcome for each in unlike_kafka} == {Outcome.NOT_APPLICABLE}
    assert {each.area for each in unlike_kafka if each.reason not in LACKED} == {"placement"}, "it needs no others"


@pytest.mark.parametrize(
    "refusing",
    [lambda of: of.inject_error("POLICY_VIOLATION"), pytest.param(lambda of: of.disconnect_on(), marks=soak)],
    ids=["error", "disconnect"],
)
async def test_a_controller_that_refuses_the_apis_is_judged_on_the_rest(refusing: Refusing) -> None:
    async with Controller(session_timeout_ms=60_000) as refuses:  # No session ends within a case.
        for api in APIS:
            refuses.add(refusing(stub(api)))
        found = await conformance.run(
            refuses.bootstrap, cases=[case for case in all_cases() if case.area in CLEANED_AREAS]
        )
        brokers = refuses.running.controller.image.cluster.brokers.values()
        assert len(brokers) > 100
        assert [each.broker_id for each in brokers if not each.fenced] == []
    assert found.failures != []
    assert fails(found) == []


async def test_an_api_that_does_not_answer_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "CLEANUP_TIMEOUT_S", 0.2)
    cases = [case for case in all_cases() if case.area in ("producer ids", "elections")]
    async with Controller() as silent:
        dropped = [silent.add(stub(api).drop()) for api in APIS]
        found = await conformance.run(silent.bootstrap, cases=cases, parallel=1)
        assert [each.call_count for each in dropped] == [1, 1]
    assert found.failures == []
