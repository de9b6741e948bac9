from typing import Any

import pytest
from mockraft.wire import messages, records, schema_files, schema_reading
from mockraft.wire.errors import WireError
from mockraft.wire.schema_reading import Span

from ..rows import each_row
from .conftest import generated_class, message_tree

HEARTBEAT = bytes.fromhex("00000001 0000000000000009 0000000000000010 01 00 00")


def test_agrees_with_the_generated_reader_on_every_pair(sample_bytes: Any) -> None:
    for (name, version), data in sample_bytes.items():
        spans: list[Span] = []
        tree = schema_reading.read(name, version, data, spans)
        assert tree == message_tree(generated_class(name).read(data, version), version), (name, version)
        assert schema_reading.write(name, version, tree) == data, (name, version)
        end = 0
        for span in spans:
            assert span.offset == end, (name, version, span)
            end += span.length
        assert end == len(data), (name, version)


def test_errors_have_offset_and_field() -> None:
    data = bytes.fromhex("02 05 6f7264")  # one topic whose name should have four bytes
    spans: list[Span] = []
    with pytest.raises(WireError) as caught:
        schema_reading.read("CreateTopicsRequest", 7, data, spans)
    assert (caught.value.offset, caught.value.field) == (1, "topics[0].name")
    assert caught.value.what == "says 4, but only 3 bytes are left"
    assert [span.path for span in spans] == ["topics"]


@each_row(
    ("data", "what"),
    [
        (HEARTBEAT[:-1], "the bytes end inside this item"),
        (HEARTBEAT[:-1] + b"\x80\x80\x80\x80\x80\x01", "varint"),
        (HEARTBEAT + b"\x00", "1 bytes are left over"),
        (HEARTBEAT[:-1] + b"\x01\x05\x09", "tag 5 says 9 bytes; 0 are left"),
        (HEARTBEAT[:-1] + b"\x01\x00\x00", "tag 0 is not valid in this version"),
    ],
)
def test_malformed_bytes_are_reported(data: bytes, what: str) -> None:
    with pytest.raises(WireError, match=what):
        schema_reading.read("BrokerHeartbeatRequest", 0, data)


def test_unknown_tags_are_kept() -> None:
    data = HEARTBEAT[:-1] + bytes.fromhex("02 05 01 aa 90 4e 02 bb cc")
    tree = schema_reading.read("BrokerHeartbeatRequest", 0, data)
    assert tree["_unknownTaggedFields"] == [(5, b"\xaa"), (10000, b"\xbb\xcc")]
    assert schema_reading.write("BrokerHeartbeatRequest", 0, tree) == data


def test_writing_null_where_there_is_none_is_refused() -> None:
    with pytest.raises(WireError, match="null"):
        schema_reading.write("MetadataRequest", 0, {"topics": None})


def test_an_unknown_message_or_version_is_refused() -> None:
    with pytest.raises(WireError, match="no message called 'NoSuchRequest'"):
        schema_reading.read("NoSuchRequest", 0, b"")
    with pytest.raises(WireError, match="no version 9: versions 0 to 2"):
        schema_reading.read("BrokerHeartbeatRequest", 9, b"")


def test_comments_go_but_not_those_inside_strings() -> None:
    assert schema_files.load('{"a": "http://x", // a "comment"\n // more\n "b": 1}') == {"a": "http://x", "b": 1}


def test_the_specs_are_the_generated_classes() -> None:
    generated = {*messages.NAMES, *records.NAMES}
    assert generated <= set(schema_files.names())
    for name in generated:
        cls = records.by_name(name) if name in records.NAMES else messages.by_name(name)
        spec = schema_files.schema(name)
        assert (cls.min_version, cls.max_version, cls.api_key) == (*spec.valid, spec.api_key), name
        assert all(hasattr(cls(), field.attribute) for field in spec.root.fields), name
