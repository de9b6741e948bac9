"""Message specs in folders become classes, merged with Kafka's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft.codegen.overlay import load
from mockraft.codegen.spec import SpecError
from mockraft.releases import NEWEST
from mockraft.wire import messages, records
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.overlay import SHIPPED

from ..rows import each_row

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "schemas_json" / NEWEST

Write = Callable[..., Path]


def shipped(path: str) -> dict[str, Any]:
    lines = (SPECS / path).read_text().splitlines()
    return dict(json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//"))))


def greeting(kind: str = "request", **changed: Any) -> dict[str, Any]:
    """An API that Kafka does not have."""
    tree = {
        "apiKey": 1000,
        "type": kind,
        "name": f"Greet{kind.capitalize()}",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [{"name": "Words", "type": "string", "versions": "0+", "about": "What is said."}],
    }
    return {**tree, **changed}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(*trees, folder="mine")`: a folder with these specs; a text is a file of its own."""

    def put(*trees: dict[str, Any] | str, folder: str = "mine") -> Path:
        target = tmp_path / folder
        target.mkdir(exist_ok=True)
        for number, tree in enumerate(trees):
            name = f"{number}.json" if isinstance(tree, str) else f"{tree.get('name', number)}.json"
            (target / name).write_text(tree if isinstance(tree, str) else json.dumps(tree))
        return target

    return put


def test_an_api_that_kafka_has_not_is_read_and_written(write: Write) -> None:
    overlay = load([write(greeting(), greeting("response"))])
    request: Any = overlay.request(1000)
    assert request(words="hi").write(1).hex() == "03686900"
    assert request.read(request(words="hi").write(0), 0).words == "hi"
    assert to_json(request(words="hi"), 1) == {"words": "hi"}
    assert from_json(request, {"words": "hi"}, 1) == request(words="hi")
    assert (overlay.request_header_version(1000, 0), overlay.request_header_version(1000, 1)) == (1, 2)
    assert (overlay.response_header_version(1000, 0), overlay.response_header_version(1000, 1)) == (0, 1)
    assert overlay.api_name(1000) == "Greet"


def test_kafkas_own_messages_are_unchanged(write: Write) -> None:
    assert load([write((SPECS / "message" / "BrokerHeartbeatRequest.json").read_text(), folder="same")]).overlaid == {}
    tree = shipped("message/BrokerHeartbeatRequest.json")
    tree["fields"].append({"name": "Mood", "type": "int8", "versions": "2+", "taggedVersions": "2+", "tag": 7})
    folder = write(tree)
    overlay = load([folder])
    assert load([folder]) is overlay
    heartbeat: Any = overlay.request(63)
    assert heartbeat(mood=3).mood == 3
    assert overlay.request(62) is messages.request(62)
    assert not hasattr(messages.request(63)(), "mood")
    with pytest.raises(WireError):
        messages.request(1000)
    assert SHIPPED.request(63) is messages.request(63)


def test_a_record_that_kafka_has_not_has_a_type(write: Write) -> None:
    record = {"apiKey": 900, "type": "metadata", "name": "MoodRecord", "validVersions": "0", "flexibleVersions": "0+"}
    overlay = load([write({**record, "fields": [{"name": "Mood", "type": "int8", "versions": "0+"}]})])
    assert overlay.by_type(900).__name__ == "MoodRecord"
    assert overlay.by_type(0) is records.by_type(0)
    assert "MoodRecord" in overlay.record_names


def test_two_folders_that_change_one_message_are_put_together_or_refused(write: Write) -> None:
    one, two = shipped("message/BrokerHeartbeatRequest.json"), shipped("message/BrokerHeartbeatRequest.json")
    one["fields"].insert(1, {"name": "Mood", "type": "int8", "versions": "0+"})
    two["fields"][0]["about"] = "Whose."
    two["fields"] = [field for field in two["fields"] if field["name"] != "WantFence"]
    overlay = load([write(one, folder="one"), write(two, folder="two")])
    names = [field.name for field in overlay.schema("BrokerHeartbeatRequest").root.fields]
    assert names[:4] == ["BrokerId", "Mood", "BrokerEpoch", "CurrentMetadataOffset"]
    assert "WantFence" not in names
    one["fields"][-1]["tag"], two["fields"][-1]["tag"] = 8, 9
    with pytest.raises(SpecError, match=r"both change BrokerHeartbeatRequest.CordonedLogDirs: tag to 8 and to 9"):
        load([write(one, folder="one"), write(two, folder="two")])


def test_a_field_that_only_got_another_name_answers_to_the_old_one(write: Write) -> None:
    tree = shipped("message/BrokerHeartbeatRequest.json")
    tree["fields"][0]["name"] = "Who"
    folder = write(tree)
    (folder / "SOURCE.toml").write_text('[renamed]\n"BrokerHeartbeatRequest.BrokerHeartbeatRequest.Who" = "BrokerId"\n')
    heartbeat: Any = load([folder]).request(63)
    assert heartbeat(who=5).broker_id == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[renamed", r"SOURCE\.toml: "),
        ("renamed = 1", r"renamed: want lines like"),
        *(
            (f'[renamed]\n"GreetRequest.GreetRequest.{name}" = "Words"', r"want a field of this struct and one it lost")
            for name in ("Nothing", "Words")
        ),
    ],
)
def test_reports_faulty_renames(write: Write, text: str, says: str) -> None:
    folder = write(greeting(), greeting("response"))
    (folder / "SOURCE.toml").write_text(text)
    with pytest.raises(SpecError, match=says):
        load([folder])


def test_removed_field_has_its_default(write: Write) -> None:
    tree = shipped("message/BrokerHeartbeatRequest.json")
    tree["fields"] = [field for field in tree["fields"] if field["name"] not in ("WantFence", "OfflineLogDirs")]
    request: Any = load([write(tree)]).request(63)()
    assert (request.want_fence, request.offline_log_dirs) == (False, ())


@pytest.mark.parametrize(
    ("trees", "says"),
    [
        (["{"], r"0\.json: line 1"),
        (["[]"], r"0\.json: the file holds no JSON object"),
        ([{"type": "request", "validVersions": "0"}], r"'name' is missing"),
        ([greeting(fields=[{"name": "Words", "type": "text", "versions": "0+"}])], r"Words: .*text"),
        ([greeting(fields=[{"name": "Words", "type": "int8", "versions": "x"}])], r"Words: versions: 'x'"),
        ([greeting(fields=[{"name": "Words", "typo": "int8"}])], r"Words: unknown key 'typo'"),
        ([greeting(fields=["Words"])], r"'fields' is not a list of objects"),
        ([greeting(fields=[{"name": "A b", "type": "int8", "versions": "0+"}])], r"a name is letters"),
        ([greeting(apiKey="<TBD>")], r"apiKey: '<TBD>' is not a number"),
        ([greeting(apiKey=-5), greeting("response", apiKey=-5)], r"needs an apiKey from 0 to 32767"),
        ([greeting(name="Greeting")], r"a request has to be called GreetingRequest"),
        ([greeting()], r"GreetRequest has no response: add GreetResponse.json with apiKey 1000"),
        ([greeting("response")], r"GreetResponse has no request: add GreetRequest.json with apiKey 1000"),
        ([greeting(), greeting("response", validVersions="0")], r"versions 0 to 1, but GreetResponse 0 to 0"),
        ([greeting("question")], r"the type 'question' is none of"),
        ([greeting(), greeting("response"), greeting(name="HelloRequest")], r"has the apiKey 1000 of"),
        ([json.dumps(greeting()), json.dumps(greeting())], r"describes GreetRequest too"),
        ([greeting(listeners="controller"), greeting("response")], r"listeners: want a list such as"),
    ],
)
def test_reports_faulty_specs_with_file_and_field(write: Write, trees: list[Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        load([write(*trees)])


def test_a_folder_without_specs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no message spec"):
        load([tmp_path])
    with pytest.raises(SpecError, match="there is no such folder"):
        load([tmp_path / "nowhere"])


@each_row("folder", sorted((ROOT / "schemas_json" / "proposals").iterdir()))
def test_proposal_messages_round_trip(folder: Path) -> None:
    overlay = load([folder])
    for name, found in overlay.overlaid.items():
        for version in range(found.cls.min_version, found.cls.max_version + 1):
            message = found.cls()
            assert found.cls.read(message.write(version), version) == message, name
