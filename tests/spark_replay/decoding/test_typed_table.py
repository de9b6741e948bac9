"""Typed columns have the values of the JSON bodies, and those are Kafka's JSON form by way of a tree."""

import base64
import json
import math
import sys
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.codegen.every_release import every_release
from mockraft.spark_replay.decoding import (
    decode_batches,
    decode_frames,
    decode_typed,
    decode_typed_batches,
    typed_schema,
)
from mockraft.spark_replay.decoding.frame_shapes import ShapeTable
from mockraft.spark_replay.decoding.json_text import json_text, of_float
from mockraft.spark_replay.schemas import FRAMES
from mockraft.vectors.bodies import MANNERS, random_body
from mockraft.wire import messages
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.message import Message
from mockraft.wire.overlay import using
from mockraft.wire.redaction.messages import masked
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of

from ...budgets import sample
from .conftest import Row, frame_table, request_frame, response_frame


def expected(cls: Any, spec: StructSpec, version: int, tree: dict[str, Any]) -> dict[str, Any]:
    """Return a struct as the typed column has it, from its JSON."""
    kind = getattr(sys.modules[cls.__module__], spec.name)
    found: dict[str, Any] = {}
    for field in spec.fields:
        if not field.versions.covers(version):
            found[field.json_name] = None
        elif field.json_name in tree:
            found[field.json_name] = value(cls, field, version, tree[field.json_name])
        else:
            default = getattr(kind(), field.attribute)
            assert field.tagged.covers(version)
            found[field.json_name] = default_value(cls, field, version, default)
    return found


def default_value(cls: Any, field: FieldSpec, version: int, default: Any) -> Any:
    if field.struct is not None and not field.is_array and default is not None:
        return expected(cls, field.struct, version, every_default(field.struct, default, version))
    return "AAAAAAAAAAAAAAAAAAAAAA" if field.kind == "uuid" and not field.is_array else default


def every_default(spec: StructSpec, default: Any, version: int) -> dict[str, Any]:
    fields = [field for field in spec.fields if field.versions.covers(version)]
    return {field.json_name: getattr(default, field.attribute) for field in fields}


def value(cls: Any, field: FieldSpec, version: int, tree: Any) -> Any:
    if tree is None:
        return None
    if field.is_array:
        return [element(cls, field, version, each) for each in tree]
    return element(cls, field, version, tree)


def element(cls: Any, field: FieldSpec, version: int, tree: Any) -> Any:
    if field.struct is not None:
        return expected(cls, field.struct, version, tree)
    if field.kind in ("bytes", "records"):
        return base64.b64decode(tree)
    return float(tree) if field.kind == "float64" else tree


def verify(frames: pa.RecordBatch, api: str) -> pa.RecordBatch:
    """Return the typed messages, after comparing them with the JSON of the same frames and with those one by one."""
    typed = decode_typed(frames, api, show_secrets=True)
    rows = frames.filter(pa.array([key == typed_key(api) for key in frames["api_key"].to_pylist()]))
    plain = decode_frames(rows, show_secrets=True, by_shape=False)
    assert typed.schema == typed_schema(api)
    assert typed.select(["frame_no", "decode_status", "roundtrip"]) == plain.select(
        ["frame_no", "decode_status", "roundtrip"]
    )
    every = every_release()
    for row, known in zip(typed.to_pylist(), plain.to_pylist(), strict=True):
        side, other = ("response", "request") if row["is_response"] else ("request", "response")
        assert row[other] is None
        if known["body"] is None:
            assert row[side] is None
            continue
        cls = every.by_name(f"{api}{side.title()}")
        wanted = expected(cls, schema_of(cls).root, row["api_version"], json.loads(known["body"]))
        assert alike(row[side], wanted), (api, row["api_version"], row[side], wanted)
    return typed


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    return len(one) == len(other) and all(map(alike, one, other)) if isinstance(one, list) else bool(one == other)


def typed_key(api: str) -> int:
    return every_release().by_name(f"{api}Request").api_key


def test_values_of_real_captures_are_those_of_their_json(captured: dict[str, list[pa.RecordBatch]]) -> None:
    frames = pa.Table.from_batches([batch for batches in captured.values() for batch in batches])
    (whole,) = frames.combine_chunks().to_batches()
    names = {name.removesuffix("Request"): key for key, name in every_release().requests.items()}
    present = [name for name, key in names.items() if key in set(whole["api_key"].to_pylist())]
    rows = sum(verify(whole, name).num_rows for name in present if name != "ApiVersions")
    assert rows + decode_typed(whole, "ApiVersions").num_rows == whole.num_rows == 2657


@pytest.mark.parametrize("part", sample(range(6), 1))
def test_values_of_every_message_in_every_version_are_those_of_their_json(part: int, table: ShapeTable) -> None:
    rng = Random(part)
    every, rows = every_release(), 0
    for key, name in sorted(every.requests.items())[part::6]:
        api = name.removesuffix("Request")
        found: list[Row] = []
        for cls in (every.by_name(name), every.by_name(every.responses[key])):
            for version in range(cls.min_version, cls.max_version + 1):
                if (cls.__name__, version) == ("ControlledShutdownRequest", 0):
                    continue  # its header has no client id
                with using(every):
                    bodies = [random_body(cls.__name__, version, rng, kind) for kind in ("plain", "mixed")]
                made = request_frame if cls.__name__.endswith("Request") else response_frame
                for body in bodies:
                    found += [made(from_json(cls, body, version), version)] * rng.choice((1, 20))
        rows += verify(frame_table(found), api).num_rows
    assert rows > 1000
    assert sum(shape.hits for known in table._sizes.values() for shape in known.shapes) > rows / 2


def test_fields_that_a_version_lacks_are_null_and_other_apis_are_left_out() -> None:
    heartbeats = [request_frame(messages.BrokerHeartbeatRequest(broker_id=7), version) for version in (0, 1)]
    frames = frame_table([*heartbeats, request_frame(messages.ApiVersionsRequest(), 3)])
    rows = decode_typed(frames, "BrokerHeartbeat")["request"].to_pylist()
    assert [(row["brokerId"], row["offlineLogDirs"]) for row in rows] == [(7, None), (7, [])]


@pytest.mark.parametrize("copies", [1, 20])
def test_secrets_are_hidden_in_typed_columns(copies: int) -> None:
    token = messages.CreateDelegationTokenResponse(hmac=b"hunter2", token_id="shown")
    frames = frame_table([response_frame(token, 3)] * copies)
    hidden = decode_typed(frames, "CreateDelegationToken")["response"].to_pylist()
    assert [(row["hmac"], row["tokenId"]) for row in hidden] == [(b"[hidden]", "shown")] * copies
    shown = decode_typed(frames, "CreateDelegationToken", show_secrets=True)["response"].to_pylist()
    assert {row["hmac"] for row in shown} == {b"hunter2"}


def test_typed_messages_of_every_api_can_be_stored(tmp_path: Any) -> None:
    for name in every_release().requests.values():
        api = name.removesuffix("Request")
        empty = pa.Table.from_batches(decode_typed_batches([], api))
        pq.write_table(empty, tmp_path / f"{api}.parquet")
        assert pq.read_table(tmp_path / f"{api}.parquet").schema.equals(typed_schema(api))


def test_batches_with_few_frames_of_the_api_are_joined() -> None:
    heartbeats = [request_frame(messages.BrokerHeartbeatRequest(broker_id=number), 1) for number in range(90)]
    others = [request_frame(messages.FetchRequest(), 17)] * 90
    frames = frame_table([row for pair in zip(heartbeats, others, strict=True) for row in pair])
    found = [*decode_typed_batches((frames.slice(at, 7) for at in range(0, 180, 7)), "BrokerHeartbeat")]
    assert len(found) == 1
    assert found[0].equals(decode_typed(frames, "BrokerHeartbeat"))
    assert [row["brokerId"] for row in found[0].column("request").to_pylist()] == [*range(90)]


def test_rows_of_batches_are_in_the_order_of_direction_and_size() -> None:
    asked = [request_frame(messages.FetchRequest(rack_id="r" * (number % 3)), 17) for number in range(40)]
    answered = [response_frame(messages.FetchResponse(session_id=number), 17) for number in range(40)]
    broken = (asked[0][0][:-1], *asked[0][1:])
    frames = frame_table([*(row for pair in zip(asked, answered, strict=True) for row in pair), broken])
    (found,) = map(pa.table, decode_typed_batches([frames.slice(0, 50), frames.slice(50)], "Fetch"))
    kinds = found.select(["is_response", "size"]).to_pylist()
    assert kinds == sorted(kinds, key=lambda row: (row["is_response"], row["size"]))
    assert found.sort_by("frame_no").equals(pa.table(decode_typed(frames, "Fetch")).sort_by("frame_no"))
    assert found["request"].null_count == 41
    assert [batch.num_rows for batch in decode_typed_batches([frames, frames], "Vote")] == [0]


@pytest.mark.parametrize("decode", [decode_batches, partial(decode_typed_batches, api="BrokerHeartbeat")])
def test_strings_of_frames_may_be_dictionaries(decode: Any) -> None:
    frames = frame_table([request_frame(messages.BrokerHeartbeatRequest(broker_id=number), 1) for number in range(30)])
    encoded = [column.dictionary_encode() if column.type == pa.string() else column for column in frames.columns]
    words = pa.record_batch(encoded, names=frames.schema.names)
    parts = [words.slice(at, 10) for at in (0, 10, 20)]
    assert pa.Table.from_batches(decode(parts)).equals(pa.Table.from_batches(decode([frames])))


def test_frames_that_do_not_decode_have_no_body() -> None:
    data, key, version, _ = request_frame(messages.BrokerHeartbeatRequest(), 1)
    frames = frame_table([(data[:-3], key, version, False), (None, key, version, False)])
    rows = decode_typed(frames, "BrokerHeartbeat").to_pylist()
    assert [(row["decode_status"], row["request"]) for row in rows] == [("error", None), ("truncated", None)]
    assert [name for name in FRAMES.names if name not in rows[0]] == ["frame"]


def test_reports_unknown_api() -> None:
    with pytest.raises(WireError, match="no API 'fetch'; did you mean"):
        typed_schema("fetch")


def by_way_of_a_tree(message: Message, version: int) -> str:
    return json.dumps(to_json(message, version), separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("part", range(4))
def test_text_of_every_message_in_every_version_is_that_of_its_tree(part: int) -> None:
    rng = Random(part)
    every, compared = every_release(), 0
    with using(every):
        for name in sorted({*every.requests.values(), *every.responses.values()})[part::4]:
            cls: Any = every.by_name(name)
            for version in range(cls.min_version, cls.max_version + 1):
                for manner in MANNERS:
                    data = from_json(cls, random_body(name, version, rng, manner), version).write(version)
                    for message in ((decoded := cls.read(data, version)), masked(decoded, every)):
                        assert json_text(message, version) == by_way_of_a_tree(message, version), (name, version)
                        compared += 1
    assert compared > 1000


def test_unknown_tags_come_last_in_every_struct() -> None:
    state = messages.fetch_request.ReplicaState(replica_id=1, unknown_tagged_fields=[(9, b"inner")])
    request = messages.FetchRequest(replica_state=state, unknown_tagged_fields=[(7, b"seven"), (300, b"")])
    message = messages.FetchRequest.read(request.write(17), 17)
    assert json_text(message, 17) == by_way_of_a_tree(message, 17)
    unknown = '"_unknownTaggedFields":[{"tag":7,"data":"c2V2ZW4="},{"tag":300,"data":""}]'
    assert json_text(message, 17).endswith(f",{unknown}}}")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -0.0, 1e300, 0.1])
def test_floats_are_written_as_kafka_does(value: float) -> None:
    ops = [messages.alter_client_quotas_request.OpData(key="rate", value=value)]
    entries = [messages.alter_client_quotas_request.EntryData(ops=ops)]
    message = messages.AlterClientQuotasRequest(entries=entries)
    assert of_float(value) in json_text(message, 1)
    assert json_text(message, 1) == by_way_of_a_tree(message, 1)
