"""Releases compared, and the facts that Java programs of older releases give."""

import json
from pathlib import Path

import mockraft.schemas_json
import pytest
from mockraft.codegen.compare import compare, main, read_release
from mockraft.codegen.sync import FACTS, run_java
from mockraft.kafka.jars import classpath
from mockraft.releases import NEWEST

KEPT = Path(mockraft.schemas_json.__path__[0]) / NEWEST
OLD = {
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


def release(folder: Path, specs: dict[str, object], errors: list[dict[str, object]]) -> Path:
    (folder / "message").mkdir(parents=True)
    for name, spec in specs.items():
        (folder / "message" / f"{name}.json").write_text("// a licence\n" + json.dumps(spec))
    (folder / "errors.json").write_text(json.dumps(errors))
    return folder


@pytest.fixture
def releases(tmp_path: Path) -> tuple[Path, Path]:
    new = json.loads(json.dumps(OLD))
    new["validVersions"] = "0-2"
    new["fields"][2]["fields"][0]["type"] = "int64"
    new["fields"][1] = {"name": "Rack", "type": "string", "versions": "2+", "nullableVersions": "2+"}
    errors = [{"code": 1, "name": "TOO_LOUD"}]
    old = release(tmp_path / "old", {"GreetRequest": OLD, "WaveRequest": OLD}, errors)
    return old, release(
        tmp_path / "new", {"GreetRequest": new, "NodRequest": OLD}, [*errors, {"code": 2, "name": "SHY"}]
    )


def test_lists_differences_field_by_field(releases: tuple[Path, Path]) -> None:
    old, new = releases
    moved = [f"{change['where']}: {change['what']}" for change in compare(read_release(old), read_release(new))]
    assert moved == [
        "GreetRequest: validVersions 0-1 → 0-2",
        "GreetRequest.Gone: removed",
        "GreetRequest.Gifts.Size: type int32 → int64",
        "GreetRequest.Rack: added, string in versions 2+",
        "NodRequest: added, versions 0-1",
        "WaveRequest: removed, versions 0-1",
        "error 2: none → SHY",
    ]


def test_a_release_does_not_differ_from_itself(releases: tuple[Path, Path]) -> None:
    old, _ = releases
    assert list(compare(read_release(old), read_release(old))) == []


def test_prints_json_on_request(releases: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(releases[0]), str(releases[1]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["moved"][1] == {"where": "GreetRequest.Gone", "what": "removed"}


def test_names_the_release_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([NEWEST, "1.2.3"]) == 2
    assert "sync --kafka-version 1.2.3" in capsys.readouterr().err


@pytest.mark.real_kafka
@pytest.mark.parametrize("name", ["configs.json", "features.json"])
@pytest.mark.parametrize("release", ["3.9.1", "4.1.1"])
def test_older_releases_have_the_same_form(release: str, name: str) -> None:
    older, kept = json.loads(run_java(FACTS[name], classpath(release))), json.loads((KEPT / name).read_text())
    assert older.keys() == kept.keys()
