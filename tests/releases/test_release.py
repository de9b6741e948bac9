"""Releases as values: their names, tables and specs; names are written once, in `SUPPORTED`."""

import ast
import re
from pathlib import Path

import pytest
from mockraft.releases import DEFAULT, NEWEST, SUPPORTED, Behaviour, Release, release
from mockraft.wire.spec_files import read, sort_key

from ..rows import each_row

pytestmark = pytest.mark.one_python

EACH = [release(version) for version in SUPPORTED]
SINCE_4_3 = {"UnregisterControllerRequest", "UnregisterControllerResponse"}


@each_row("text", ["3.9", "3.9.2", "3.9.7", "v3.9", "3.9.2-rc1"])
def test_is_found_by_every_form_of_its_version(text: str) -> None:
    assert release(text) is release("3.9")
    assert (release(text).name, release(text).kafka_version) == ("3.9", "3.9.2")


def test_older_patch_releases_have_their_own_rules_and_tables() -> None:
    older = release("v4.2.0")
    assert (older.name, older.line, older.kafka_version) == ("4.2.0", "4.2", "4.2.0")
    assert release("4.2").has(Behaviour.READERS_ARE_BOUNDED)
    assert not older.has(Behaviour.READERS_ARE_BOUNDED)
    keys = [{row["name"] for row in of.config_tables["topic"]} for of in (older, release("4.2"))]
    assert keys[1] - keys[0] == {"max.decompressed.message.bytes"}
    assert older.api_versions == release("4.2").api_versions


def test_preview_has_the_tables_of_the_newest_release() -> None:
    preview, newest = release("4.5"), release(NEWEST)
    assert (preview.name, preview.specs, preview.config_tables) == ("4.5", newest.specs, newest.config_tables)
    rules = {each for each in Behaviour if preview.has(each) and not newest.has(each)}
    assert {each.name for each in rules} == {
        "VOTERS_STAY_REGISTERED",
        "UPDATED_VOTERS_ARE_ASKED",
        "ABORTED_ADDITIONS_NAME_THE_VOTER",
    }


@each_row("text", ["3.6", "4.6", "", "latest", "39", "4.2.x", "4.2."])
def test_unknown_release_names_the_supported_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"3\.7, 3\.8, 3\.9, 4\.0, 4\.1, 4\.2, 4\.3, 4\.4"):
        release(text)


def test_default_is_supported_and_the_newest_is_last() -> None:
    assert release() is release(DEFAULT)
    assert sorted(SUPPORTED, key=sort_key) == list(SUPPORTED)
    assert SUPPORTED[-1] == NEWEST


def test_is_since_compares_releases() -> None:
    assert [each.name for each in EACH if each.is_since("4.1")] == ["4.1", "4.2", "4.3", "4.4"]


@each_row("of", EACH)
def test_tables_are_complete(of: Release) -> None:
    low, high = of.feature_ranges()["metadata.version"]
    assert set(of.metadata_versions) == set(range(low, high + 1))
    assert of.error_names[41] == "NOT_CONTROLLER"
    assert of.error_messages[41].startswith("This is not the correct controller")
    assert {"topic", "broker", "topic_synonyms"} <= set(of.config_tables)
    assert of.api_versions[18][0] == 0
    assert "message/ApiVersionsRequest.json" in of.specs


def test_only_the_newest_has_controller_unregistration() -> None:
    found = {of.name: {name for name in SINCE_4_3 if f"message/{name}.json" in of.specs} for of in EACH}
    assert found == {of.name: SINCE_4_3 if of.is_since("4.4") else set() for of in EACH}
    assert [of.name for of in EACH if 94 in of.api_versions] == ["4.4"]


def test_spec_is_that_of_the_release() -> None:
    versions = {of.name: _valid_versions(of.specs["message/ApiVersionsRequest.json"]) for of in EACH}
    assert versions == dict.fromkeys(("3.7", "3.8"), "0-3") | dict.fromkeys(
        ("3.9", "4.0", "4.1", "4.2", "4.3"), "0-4"
    ) | {"4.4": "0-5"}
    assert _valid_versions(release("3.9").specs["message/LeaderAndIsrRequest.json"]) == "0-7"
    assert _valid_versions(release("4.0").specs["message/LeaderAndIsrRequest.json"]) == "none"


def test_unstable_levels_are_beyond_the_range() -> None:
    assert release("4.3").feature_ranges(unstable=True)["metadata.version"][1] > 30
    assert release("4.3").metadata_version(31).name == "4.4-IV0"


def test_level_of_a_newer_release_is_the_same_there() -> None:
    assert release("3.7").metadata_version(30) == release("4.3").metadata_versions[30]
    with pytest.raises(ValueError, match="No MetadataVersion with feature level 999"):
        release("3.7").metadata_version(999)


def test_reading_a_release_that_is_not_there_is_an_error(tmp_path: object) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no release 9\.9\.9"):
        read(tmp_path, "9.9.9")  # type: ignore[arg-type]


def _valid_versions(text: str) -> str:
    (line,) = [line for line in text.splitlines() if '"validVersions"' in line]
    return line.split('"')[3]


ROOT = Path(__file__).parents[2]
FOLDERS = [
    "brokers",
    "cli",
    "codegen",
    "conformance",
    "front",
    "kafka",
    "kafka_api",
    "kafka_configs",
    "releases",
    "server",
    "spark_replay",
    "testing",
    "twin",
    "wire",
]
CASES = ROOT / "conformance" / "cases"
"""Cases name the releases since and until which they hold."""

NAMED = {
    "kafka/cluster_tests.py": "the newest release with test classes on Maven",
    "kafka/tools.py": "the releases in which tools became other classes",
    "releases/behaviour.py": "the releases in which rules began",
    "releases/release.py": "the supported ones and the default",
    "wire/api_keys.py": "the release that it is generated from",
    "twin/brokers.py": "the first release whose controllers simulated brokers follow",
}
NAME = "|".join(rf"{re.escape(each.rpartition('.')[0])}(\.\d+)?" for each in SUPPORTED)
QUOTED = re.compile(f"[\"'](?:{NAME})[\"']")


def test_releases_are_named_only_where_they_are_listed() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if path.parent != CASES
        and QUOTED.search(text := path.read_text())
        and any(map(names_a_release, ast.walk(ast.parse(text))))
    }
    assert found == NAMED.keys()


def names_a_release(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(NAME, node.value) is not None
