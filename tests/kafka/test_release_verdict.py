"""The verdict on a release candidate: what a voter is told, from tables as `make sync` writes them, without Java."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from mockraft.codegen.spec_changes import compare
from mockraft.kafka.release_verdict import Built, Verdict, predecessor
from mockraft.releases import Release

from ..cli.cli import invoke as mockraft
from ..cli.cli import one_line
from ..rows import each_row

SCHEMAS = Path(__file__).parents[2] / "schemas_json"


def built(version: str, folder: Path, of: str = "") -> Built:
    """Return a release with tables of its own that can be changed: those of `of`."""
    shutil.copytree(SCHEMAS / (of or version), folder / version)
    return Built(folder, Release(version, folder), "c0ffee", version)


def edit(of: Built, file: str, change: object) -> None:
    path = of.jars / of.kafka_version / file
    tree = json.loads(path.read_text())
    change(tree)  # type: ignore[operator]
    path.write_text(json.dumps(tree))


def verdict(old: Built, new: Built) -> Verdict:
    found = [each for each in compare(old.tables, new.tables) if each.kind != "spec"]
    return Verdict(old, new, found, [], (0, 1))


def without_own_levels(tree: dict[str, list[dict[str, object]]]) -> None:
    own = [row for row in tree["metadata_versions"] if str(row["release"]) == "4.4"]
    tree["metadata_versions"] = [row for row in tree["metadata_versions"] if row not in own]
    tree["unstable_metadata_versions"] = own + tree["unstable_metadata_versions"]


def test_a_candidate_whose_newest_level_is_the_last_releases_is_found(tmp_path: Path) -> None:
    """As 4.4.0 RC0 was (apache/kafka#23235)."""
    old, new = built("4.3.1", tmp_path / "old"), built("4.4.0", tmp_path / "new")
    assert verdict(old, new).points == []
    edit(new, "features.json", without_own_levels)
    again = Built(new.jars, Release("4.4.0", new.jars), new.commit, new.named)
    assert verdict(old, again).points == [
        "the newest metadata.version is 4.3-IV0 (30), none of 4.4; "
        "4.4-IV0, 4.4-IV1, 4.4-IV2 are not ready for production"
    ]


def test_what_a_release_takes_away_is_found(tmp_path: Path) -> None:
    old, new = built("4.4.0", tmp_path / "old"), built("4.4.1", tmp_path / "new", "4.4.0")
    edit(new, "api_versions.json", lambda tree: tree.update({"63": [1, 2]}))
    edit(new, "errors.json", lambda tree: tree.pop())
    page = verdict(old, Built(new.jars, new.tables, new.commit, "4.4.0")).as_markdown()
    assert page.startswith("# Kafka 4.4.1 (commit c0ffee) against 4.4.0: 5 to look at\n")
    for line in (
        "- the jars are called 4.4.1, and kafka/kafka-version.properties has 4.4.0",
        "- APIs on the controller's listener: BrokerHeartbeat was 0 to 2, and is 1 to 2",
        "- Errors: 136 is gone",
        "- a patch release changes errors",
        "No method of the controller's classes changed.",
    ):
        assert line in page.splitlines()


def test_the_release_before_is_the_patch_release_or_the_newest_of_the_line_before() -> None:
    assert [predecessor(each) for each in ("4.4.1", "4.4.0-rc0", "5.0.0")] == ["4.4.0", "4.3.1", "4.4.0"]
    with pytest.raises(ValueError, match="--against"):
        predecessor("2.0.0")


@each_row(
    ("arguments", "says"),
    [
        ([], "one of them"),
        (["--kafka-version", "4.4.0", "--jars", "."], "one of them"),
        (["--kafka-version", "4.4"], "'4.4' is not a Kafka release"),
        (["--jars", "no-such-folder"], "no kafka-clients-VERSION.jar"),
    ],
)
def test_what_cannot_be_checked_is_one_line(arguments: list[str], says: str) -> None:
    assert says in one_line(mockraft("release-check", *arguments).stderr)
