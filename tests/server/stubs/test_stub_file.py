"""Stub files: their contents, and errors for invalid ones."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from mockraft.server.stubs.script import Script
from mockraft.server.stubs.stub_file import StubFileError, read_stub_file

YAML = """
stubs:
  - match: {api: BrokerHeartbeat, brokerId: 1}
    trigger: {times: 2}
    actions: [{injectError: NOT_CONTROLLER}]
  - id: slow
    match: {api: [Fetch, FetchSnapshot]}
    actions: [{delayOn: {ms: 500, jitterMs: 100}}]
"""

BOMB = "\n".join(["- &a0 [x]", *(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 20)}]" for n in range(1, 10))])
"""Ten lines that come to billions of values."""


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_yaml_equals_json(tmp_path: Path) -> None:
    of_yaml = read_stub_file(written(tmp_path, "stubs.yaml", YAML))
    of_json = read_stub_file(written(tmp_path, "stubs.json", json.dumps(of_yaml.to_json())))
    assert of_yaml == of_json
    script = Script()
    script.load(of_json)
    assert [each.id for each in script.stubs.stubs] == ["slow", "stub-1"]


def test_an_error_names_file_line_entry_and_field(tmp_path: Path) -> None:
    path = written(tmp_path, "stubs.yaml", YAML.replace("brokerId", "brokrId"))
    with pytest.raises(StubFileError) as refused:
        read_stub_file(path)
    assert str(refused.value) == (
        f"{path}, line 3: stubs[0].match.brokrId: there is no match by 'brokrId'; did you mean brokerId?"
        "; a field of the request goes into where"
    )


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("a.json", "{", "line 1: not JSON"),
        ("a.yaml", "stubs: [", "not YAML"),
        ("a.json", '{"stub": []}', "stub: there is no part of a stub file 'stub'; did you mean stubs?"),
        ("a.json", '{"stubs": null}', None),
        ("a.json", '{"stubs": 3}', "stubs: expected a list, got 3"),
        ("a.json", "[" * 100_000, "nested too deep"),
        ("a.yaml", "[" * 5_000, "nested too deep"),
        ("a.yaml", BOMB, "line 6: too large: 6,"),
        ("a.yaml", "stubs: &a [{}, *a]", "line 1: an alias refers to a node that contains it"),
        ("a.yaml", "\x00", "not YAML"),
        ("a.json", "7", "expected an object with stubs, faults, plan"),
        ("a.json", '[{"id": "a"}, {"id": "a"}]', "stubs[1].id: there is a stub 'a' already"),
        ("a.json", '[{"actions": [{"injectEror": 1}]}]', "stubs[0].actions[0]: there is no action 'injectEror'"),
    ],
)
def test_invalid_files_are_reported(tmp_path: Path, name: str, text: str, wrong: str | None) -> None:
    path = written(tmp_path, name, text)
    if wrong is None:
        assert read_stub_file(path).stubs == []
        return
    with pytest.raises(StubFileError) as refused:
        read_stub_file(path)
    assert wrong in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StubFileError, match=r"nothing\.json: No such file"):
        read_stub_file(tmp_path / "nothing.json")


def test_yaml_anchor_may_be_reused(tmp_path: Path) -> None:
    text = """
        stubs:
          - {match: &first {api: BrokerHeartbeat, brokerId: 1}, actions: [drop]}
          - {match: {<<: *first, brokerId: 2}, actions: [drop]}
        """
    found = read_stub_file(written(tmp_path, "stubs.yaml", text))
    assert [each.match.to_json() for each in found.stubs] == [
        {"api": "BrokerHeartbeat", "brokerId": 1},
        {"api": "BrokerHeartbeat", "brokerId": 2},
    ]


def test_yaml_without_pyyaml_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_yaml(name: str, *rest: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    with pytest.raises(StubFileError, match=r"pip install 'mockraft\[admin\]', or write the file as JSON"):
        read_stub_file(written(tmp_path, "stubs.yaml", YAML))


def test_a_file_may_have_faults_and_a_plan_and_is_taken_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    latency = {"kind": "latency", "params": {"latencyMs": 5}}
    tree: dict[str, Any] = {"stubs": [{}], "faults": [latency], "plan": [{"at": 0, "duration": 10, "fault": latency}]}
    script = Script()
    script.load(read_stub_file(written(tmp_path, "a.json", json.dumps(tree))))
    assert (len(script.stubs.stubs), len(script.faults.all)) == (1, 1)
    tree["faults"].append({"kind": "latenzy"})
    script = Script()
    with pytest.raises(ValueError, match=r"^faults\[1\].*latenzy"):
        script.load(read_stub_file(written(tmp_path, "b.json", json.dumps(tree))))
    assert (script.stubs.stubs, script.faults.all) == ([], [])
