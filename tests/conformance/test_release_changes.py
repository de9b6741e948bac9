"""The differences between two releases: what was measured of one and not of the other."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from mockraft.conformance.observed import observed, variants
from mockraft.conformance.release_changes import KINDS, changes
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.releases import PREVIEW, SUPPORTED, Behaviour, release
from mockraft.releases.changes import Change

from tools.pages.marked_text import marked
from tools.pages.release_changes import as_markdown

from ..cli.cli import invoke as mockraft
from ..rows import each_row

DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "release-changes.md"


def test_the_page_has_the_changes_of_all_neighbours() -> None:
    assert marked(DOCUMENT.read_text()) == as_markdown().strip("\n") + "\n"


def test_each_kind_of_change_is_found() -> None:
    found = changes(release("4.3"), release("4.4"))
    assert Change("api", "UnregisterController", "—", "0 to 0") in found
    assert Change("feature", "metadata.version", "7 to 30", "7 to 33") in found
    assert Change("config", "group: `errors.deadletterqueue.topic.name`", "—", 'default ""') in found
    assert Change("config", "group: `streams.assignor.name`", "—", "default null") in found
    assert Change("rule", Behaviour.LOGGER_OPERATIONS_ARE_NAMED.rule, "—", "4.4") in found
    assert {each.kind for each in found} == {"rule", "api", "feature", "metadata.version", "config", "error"}


def kind_of(kind: str, old: str, new: str) -> list[Change]:
    return [each for each in changes(release(old), release(new)) if each.kind == kind]


def test_every_rule_is_a_change_between_neighbours() -> None:
    neighbours = pairwise((*SUPPORTED, PREVIEW))
    found = [each.what for old, new in neighbours for each in kind_of("rule", old, new)]
    backported = [each.rule for each in Behaviour if each.row.backports]
    lost = [f"not in Kafka 4.3: {rule}" for rule in backported]
    rules = [each.rule for each in Behaviour if each.row.since or each.row.until]
    assert sorted(found) == sorted([*rules, *backported, *lost])


def test_a_patch_release_has_changes_of_its_own() -> None:
    found = changes(release("4.2.1"), release("4.2.2"))
    assert {(each.kind, each.since) for each in found} == {("rule", "4.2.2 and 4.4"), ("config", "default 2147483639")}


def test_both_answers_of_a_request_are_observed() -> None:
    found = next(each for each in observed(release("3.8"), release("3.9")) if "metadata topic" in each.case)
    assert found.api == "CreateTopics v7"
    assert json.loads(found.request)["topics"][0]["name"] == "__cluster_metadata"
    assert found.differences == (
        ("topics[0].errorCode", "29", "42"),
        (
            "topics[0].errorMessage",
            "Authorization failed.",
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    )


def answering(message: str, levels: list[str], code: int = 42) -> Run:
    exchange = {"api": "X v0", "request": {}, "answer": {"errorCode": code, "errorMessage": message, "levels": levels}}
    return Run("", "", 30, verdicts=[Verdict("a", "log", "must", "", Outcome.PASSED, exchanges=[exchange])])


@each_row(
    ("newer", "differs"),
    {
        "number": (answering("only 3 brokers", ["a", "b"]), False),
        "order": (answering("only 2 brokers", ["b", "a"]), False),
        "text": (answering("only 2 racks", ["a", "b"]), True),
        "code": (answering("only 2 brokers", ["a", "b"], code=41), True),
        "value": (answering("only 2 brokers", ["a", "c"]), True),
    },
)
def test_keeps_the_cases_that_are_answered_differently(newer: Run, differs: bool) -> None:
    assert list(variants({"4.3": answering("only 2 brokers", ["a", "b"]), "4.4": newer})) == ["a"] * differs


def test_changes_add_up() -> None:
    apis = {each.what: (each.before, each.since) for each in kind_of("api", "3.9", "4.4")}
    assert apis["Fetch"] == ("0 to 17", "4 to 18")
    assert apis["ControlledShutdown"][1] == "—"


@each_row(("old", "new"), [("4.4", "4.3"), ("4.4", "4.4")])
def test_the_older_release_comes_first(old: str, new: str) -> None:
    with pytest.raises(ValueError, match="name the older release first"):
        changes(release(old), release(new))


def test_the_command_prints_text_and_json() -> None:
    printed = mockraft("conformance", "diff", "3.9", "4.0")
    assert printed.exit_code == 0
    lines = printed.stdout.splitlines()
    assert lines[0].startswith("What the controller of Kafka 4.0 does differently from that of Kafka 3.9")
    titles = [line.partition(" (")[0] for line in lines[1:] if line and not line.startswith(" ")]
    assert titles == [
        "Rules",
        "Observed on Kafka's own controllers",
        "APIs on the controller's listener",
        "Features",
        "Metadata versions",
        "Errors",
        "Configuration",
    ]
    assert f"  {Behaviour.GROUPS_HAVE_CONFIGS.rule}, since 4.0" in lines
    at = lines.index("  a broker without metadata.version among its features is refused")
    assert lines[at + 2 : at + 5] == [
        "      errorCode",
        "        3.9  35 UNSUPPORTED_VERSION",
        "        4.0  119 INVALID_REGISTRATION",
    ]
    assert lines[1].startswith(f"  {len(kind_of('rule', '3.9', '4.0'))} rules, ")
    found = json.loads(mockraft("conformance", "diff", "3.9", "4.0", "--json").stdout)
    assert {"kind", "what", "before", "since"} == set(found[0])
    assert {"kind": "observed", "before": {"errorCode": "35"}, "since": {"errorCode": "119"}}.items() <= next(
        each for each in found if each["what"] == "a broker without metadata.version among its features is refused"
    ).items()
    assert "—" not in {value for each in found for value in (each["before"], each["since"]) if isinstance(value, str)}


@each_row(("kind", "other"), [("observed", "Features ("), ("feature", "Observed on")])
def test_one_kind_of_changes_can_be_chosen(kind: str, other: str) -> None:
    printed = mockraft("conformance", "diff", "3.9", "4.0", "--only", kind).stdout
    assert other not in printed
    found = json.loads(mockraft("conformance", "diff", "3.9", "4.0", "--only", kind, "--json").stdout)
    assert {each["kind"] for each in found} == {kind}
    assert f"  {len(found)} {KINDS[kind]}\n" in printed


@each_row(
    ("arguments", "complaint"),
    [(("4.3",), "name two releases"), (("4.3", "5.0"), "is not a Kafka release"), (("4.4", "4.3"), "not later than")],
)
def test_misuse_has_exit_code_2(arguments: tuple[str, ...], complaint: str) -> None:
    refused = mockraft("conformance", "diff", *arguments)
    assert refused.exit_code == 2
    assert complaint in refused.stderr
