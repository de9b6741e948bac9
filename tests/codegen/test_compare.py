"""Releases compared: message specs and what Kafka's classes say."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from mockraft.codegen.spec_changes import compare
from mockraft.releases import SUPPORTED, release
from mockraft.releases.changes import NONE

from tools.compare_releases import find_release

from ..rows import each_row

OLD: dict[str, Any] = {
    "apiKey": 1,
    "type": "request",
    "name": "GreetRequest",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Who", "type": "string", "versions": "0+"},
        {"name": "Gone", "type": "int8", "versions": "0"},
        {
            "name": "Gifts",
            "type": "[]Gift",
            "versions": "0+",
            "fields": [{"name": "Size", "type": "int32", "versions": "0+"}],
        },
    ],
}


FEATURES: dict[str, Any] = {
    "features": {"metadata.version": {"min": 7, "max": 8, "dependencies": {}}},
    "metadata_versions": [
        {
            "level": 8,
            "name": "1.0-IV0",
            "release": "1.0",
            "metadata_changed": True,
            "supports": ["hats"],
            "leader_epoch_bump_on_isr_shrink": False,
            "record_versions": {},
            "default_levels": {"hat.version": 0},
        }
    ],
    "unstable_metadata_versions": [],
}
CONFIGS: dict[str, Any] = {
    "topic": [{"name": "loudness", "type": "INT", "default": "1", "validator": {"kind": "Range", "min": 0, "max": 9}}],
    "broker": [],
    "group": [],
    "client_metrics": [],
}
ERRORS = [{"code": 1, "name": "TOO_LOUD", "message": "Too loud."}]


def write_release(folder: Path, specs: dict[str, Any], facts: dict[str, Any]) -> Path:
    (folder / "message").mkdir(parents=True)
    for name, spec in specs.items():
        (folder / "message" / f"{name}.json").write_text("// a licence\n" + json.dumps(spec, indent=2))
    for name, tree in facts.items():
        (folder / f"{name}.json").write_text(json.dumps(tree))
    return folder


@pytest.fixture
def releases(tmp_path: Path) -> tuple[Path, Path]:
    facts: dict[str, Any] = {"features": FEATURES, "configs": CONFIGS, "errors": ERRORS, "api_versions": {"1": [0, 1]}}
    old = write_release(tmp_path / "1.0.0", {"GreetRequest": OLD, "WaveRequest": OLD | {"apiKey": 2}}, facts)
    spec, facts = copy.deepcopy((OLD, facts))
    spec["validVersions"] = "0-2"
    spec["fields"][2]["fields"][0]["type"] = "int64"
    spec["fields"][1] = {"name": "Rack", "type": "string", "versions": "2+", "nullableVersions": "2+"}
    facts["features"]["features"]["metadata.version"]["max"] = 9
    facts["features"]["metadata_versions"][0] |= {"supports": [], "default_levels": {"hat.version": 1}}
    facts["features"]["unstable_metadata_versions"] = [
        FEATURES["metadata_versions"][0] | {"level": 9, "name": "1.1-IV0"}
    ]
    facts["configs"]["topic"][0]["validator"]["max"] = 11
    facts["configs"]["broker"] = [{"name": "hats", "type": "INT", "default": None}]
    facts["errors"] = [{"code": 2, "name": "SHY", "message": ""}]
    facts["api_versions"] = {"1": [0, 2]}
    new = write_release(
        tmp_path / "elsewhere" / "1.1.0-rc0", {"GreetRequest": spec, "NodRequest": OLD | {"apiKey": 3}}, facts
    )
    return old, new


def test_lists_specs_apis_features_levels_configs_and_errors(releases: tuple[Path, Path]) -> None:
    old, new = map(find_release, map(str, releases))
    assert [tuple(change) for change in compare(old, new)] == [
        ("spec", "GreetRequest: validVersions", "0-1", "0-2"),
        ("spec", "GreetRequest.Gone", "int8 in versions 0", NONE),
        ("spec", "GreetRequest.Gifts.Size: type", "int32", "int64"),
        ("spec", "GreetRequest.Rack", NONE, "string in versions 2+"),
        ("spec", "NodRequest", NONE, "versions 0-1"),
        ("spec", "WaveRequest", "versions 0-1", NONE),
        ("api", "Greet", "0 to 1", "0 to 2"),
        ("feature", "metadata.version", "7 to 8", "7 to 9"),
        ("feature", "hat.version of a new log", "0", "1"),
        ("metadata.version", "8: hats", "yes", "no"),
        ("metadata.version", "8: hat.version of a new log", "0", "1"),
        ("metadata.version", "9", NONE, "1.1-IV0, unstable"),
        ("error", "1", "TOO_LOUD: Too loud.", NONE),
        ("error", "2", NONE, "SHY: "),
        ("config", "topic: `loudness`", "0 to 9", "0 to 11"),
        ("config", "broker: `hats`", NONE, "default null"),
    ]


@each_row("version", SUPPORTED)
def test_a_release_does_not_differ_from_itself(version: str) -> None:
    assert compare(find_release(version), find_release(version.rpartition(".")[0])) == []


def test_a_shared_spec_of_an_older_release_is_no_difference() -> None:
    found = [change for change in compare(release("4.3"), release("4.4")) if change.kind == "spec"]
    assert ("spec", "UnregisterControllerRequest", NONE, "versions 0") in found
    assert not [change for change in found if change.what.startswith("FetchRequest")]


@each_row(
    ("old", "new", "expected"),
    {
        "class": ({"kind": "", "says": "1 or -1"}, {"kind": "LambdaValidator", "says": "1 or -1"}, []),
        "none": ({"kind": "Range", "min": 1, "max": None}, None, ["at least 1", "any value"]),
        "list": (
            {"kind": "ValidString", "values": ["a", "b"]},
            {"kind": "ValidList", "values": ["a", "b"], "empty_allowed": False, "null_allowed": False},
            ["one of a, b", "list of a, b, not empty, not null"],
        ),
        "long": (
            {"kind": "Validator", "says": f"[{'1, ' * 60}2]"},
            {"kind": "Validator", "says": f"[{'1, ' * 60}3]"},
            [f"[{'1, ' * 9}1, … {'1, ' * 9}2]", f"[{'1, ' * 9}1, … {'1, ' * 9}3]"],
        ),
        "long with a difference in its middle": (
            {"kind": "Validator", "says": f"{'1' * 90}4{'1' * 90}"},
            {"kind": "Validator", "says": f"{'1' * 90}5{'1' * 90}"},
            [f"{'1' * 90}4{'1' * 90}", f"{'1' * 90}5{'1' * 90}"],
        ),
    },
)
def test_validators_are_in_words(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any] | None, expected: list[str]
) -> None:
    facts: dict[str, Any] = {"features": FEATURES, "errors": ERRORS, "api_versions": {"1": [0, 1]}}
    found = []
    for version, validator in (("1.0.0", old), ("1.1.0", new)):
        configs = CONFIGS | {"topic": [CONFIGS["topic"][0] | {"validator": validator}]}
        found.append(find_release(str(write_release(tmp_path / version, {}, facts | {"configs": configs}))))
    texts = [text for change in compare(*found) for text in (change.before, change.since)]
    assert texts == expected
