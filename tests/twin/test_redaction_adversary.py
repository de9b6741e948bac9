"""Redacted copies against an adversary who has all names (`adversary`), in every field of every record."""

from __future__ import annotations

import base64
import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mockraft.kafka_configs import config_keys
from mockraft.server.controller.log.segments import StoredBatch
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.twin.history import History
from mockraft.twin.redaction import Redactor, redacted
from mockraft.twin.state import write_directory
from mockraft.wire import metadata_log_frame, record_batch, records, schema_files, uuids
from mockraft.wire.json_form import Json, to_json
from mockraft.wire.message import Message, Struct
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.schema_files import StructSpec

from ..budgets import budget
from ..rows import each_row
from .adversary import forms, found_in, names

KEY = b"a key that is long enough"
COUNT = 500
NAMES = names(budget(COUNT, 20 * COUNT))
KINDS = [kind for kind in map(records.by_name, records.NAMES) if kind.api_key >= 0]
CONTROLS = [(kind, records.by_name(name)) for kind, name in record_batch.CONTROL_RECORDS.items()]
KNOWN = tuple(metadata_log_frame.prefix(kind.api_key, kind.max_version) for kind in KINDS if kind is not NoOpRecord)
UNKNOWN = 99


def filled(struct: Struct, spec: StructSpec, name: str) -> Struct:
    """Put a name into each text, the bytes and an unknown tagged field of a struct and of those in it."""
    struct.unknown_tagged_fields = [(UNKNOWN, name.encode())]
    for field in spec.fields:
        value: object = {"string": name, "bytes": name.encode()}.get(field.kind)
        if field.struct is not None:
            value = filled(getattr(sys.modules[type(struct).__module__], field.struct.name)(), field.struct, name)
        if value is not None:
            setattr(struct, field.attribute, [value] if field.is_array else value)
    return struct


def message(kind: type[Message], name: str) -> bytes:
    """Return a message with a name wherever there may be one."""
    found = filled(kind(), schema_files.schema_of(kind).root, name)
    assert isinstance(found, kind)
    if hasattr(found, "version"):
        found.version = kind.max_version
    return found.write(kind.max_version)


def configs(name: str, number: int) -> Iterator[ConfigRecord]:
    """Yield configs of one type of resource, with a name as its name and as value of a key of each type."""
    resource_type = sorted(config_keys.RESOURCE_TYPES)[number % len(config_keys.RESOURCE_TYPES)]
    keys = {key.type: key.name for key in config_keys.keys(resource_type).values()}
    if name.isdigit():  # which would be a number in these places
        name += "x"
    for key in {*keys.values(), "leader.replication.throttled.replicas", "org.apache.kafka"}:
        yield ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=name)


def batches(of: list[str]) -> Iterator[bytes]:
    """Yield batches with these names, five of which are in each record, control record, key and config."""
    offset = 0
    for number, name in enumerate(of):
        control_type, cls = CONTROLS[number % len(CONTROLS)]
        pairs = [
            (record_batch.control_key(control_type) + name.encode(), message(cls, name)),
            (record_batch.control_key(UNKNOWN), name.encode()),
        ]
        yield record_batch.encode_control(pairs, base_offset=offset, leader_epoch=1, timestamp_ms=1)
        kinds = KINDS[number % 5 :: 5]
        values = [metadata_log_frame.prefix(kind.api_key, kind.max_version) + message(kind, name) for kind in kinds]
        values += [metadata_log_frame.encode(each, 0) for each in configs(name, number)]
        values.append(metadata_log_frame.prefix(UNKNOWN, 0) + name.encode())
        offset += len(pairs)
        yield record_batch.encode(values, base_offset=offset, leader_epoch=1, timestamp_ms=1)
        offset += len(values)


@pytest.fixture(scope="module", params=range(0, len(NAMES), COUNT))
def given(request: pytest.FixtureRequest) -> list[str]:
    """Return names, of all shapes."""
    return NAMES[request.param : request.param + COUNT]


@pytest.fixture(scope="module")
def source(given: list[str]) -> History:
    """Return a history with each name, the first in a snapshot and the last as cluster id, too."""
    whole = b"".join(batches(given[:1]))
    stored = [StoredBatch(record_batch.read_header(data, 0), data) for data in batches(given)]
    properties = {"node.id": "7", "directory.id": uuids.text_of(bytes(range(16))), "zone": given[0]}
    return History(Path("source"), Snapshot(SnapshotId(0, 1), whole), stored, given[-1], properties)


@pytest.fixture(scope="module")
def copy(source: History) -> History:
    return redacted(source, Redactor(KEY))


def content(history: History, path: Path) -> bytes:
    files = [each for each in write_directory(history, path).rglob("*") if each.is_file()]
    return b"".join(str(each.relative_to(path)).encode() + b"\n" + each.read_bytes() for each in files)


def test_no_name_is_found_in_any_encoding(given: list[str], source: History, copy: History, tmp_path: Path) -> None:
    assert found_in(content(source, tmp_path / "source"), given) == {name for name in given if len(name) > 3}
    assert found_in(content(copy, tmp_path / "copy"), given) == set()


@each_row("hide", [bytes, zlib.compress, gzip.compress, base64.b64encode, lambda data: b"--" + base64.b64encode(data)])
def test_the_search_finds_parts_in_all_encodings(hide: Callable[[bytes], bytes]) -> None:
    assert found_in(hide(b"from KUNDE+41 44 668"), ["kunde-1", "044-668", "orders"]) == {"kunde-1"}
    for form in forms("wörter"):
        assert found_in(b"." + form + b".", ["wörter"]) == {"wörter"}, form


def trees(history: History) -> Iterator[Json]:
    """Yield the records that can be read as JSON, without those that are empty in the copy."""
    for header, data in history.batches:
        for key, value in record_batch.read_batch(data, header).records:
            if header.is_control and (kind := dict(CONTROLS).get(record_batch.control_type(key))) is not None:
                yield to_json(kind.read(value or b"", kind.max_version), kind.max_version)
            elif not header.is_control and (value or b"").startswith(KNOWN):
                yield to_json(*metadata_log_frame.decode(value or b""))


def texts(tree: Json) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for each in tree.values():
            yield from texts(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from texts(each)


def without_texts(tree: Json) -> Json:
    if isinstance(tree, dict):
        return {name: without_texts(each) for name, each in tree.items() if name != "_unknownTaggedFields"}
    if isinstance(tree, list):
        return [without_texts(each) for each in tree]
    return "" if isinstance(tree, str) else tree


def test_no_text_is_a_name_and_everything_else_stays(given: list[str], source: History, copy: History) -> None:
    after = [*trees(copy)]
    assert {text for tree in after for text in texts(tree)} & {*given} == set()
    assert [*map(without_texts, after)] == [*map(without_texts, trees(source))]


def test_the_key_reveals_every_name(given: list[str]) -> None:
    redactor = Redactor(KEY, prefixes={name[:end] for name in given for end in (1, 2, 4)})
    hidden = {name: redactor.text(name) for name in given}
    assert len({*hidden.values()}) == len(given)
    assert [name for name in given if redactor.reveal(f"the topic {hidden[name]}.") != f"the topic {name}."] == []
