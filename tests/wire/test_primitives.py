"""The slow paths and tables behind the generated readers and writers, and reading by schemas."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.wire import messages, primitives, records, schema_files, schema_reading
from mockraft.wire.errors import WireError
from mockraft.wire.schema_reading import Span

from ..rows import each_row
from .conftest import generated_class, message_tree


class TestUvarint:
    @given(st.integers(0, primitives.UINT32_MAX), st.binary(max_size=3))
    def test_round_trips(self, value: int, rest: bytes) -> None:
        written = primitives.write_uvarint(value)
        assert primitives.uvarint(b"\xff" + written + rest, 1) == (value, 1 + len(written))
        assert len(written) == max(1, -(-value.bit_length() // 7))

    @each_row("data", [b"\x80\x80\x80\x80\x10", b"\xff" * 5, b"\x80" * 5 + b"\x00"])
    def test_refuses_more_than_32_bits_or_five_bytes(self, data: bytes) -> None:
        with pytest.raises(WireError, match="more than 32 bits"):
            primitives.uvarint(data, 0)

    @each_row("data", [b"", b"\x80", b"\xff\xff\xff\xff"])
    def test_ends_with_the_data(self, data: bytes) -> None:
        with pytest.raises(IndexError):
            primitives.uvarint(data, 0)


class TestTables:
    def test_the_formats_are_big_endian_and_packed(self) -> None:
        assert primitives.packed("oBhUq").size == 1 + 1 + 2 + 16 + 8
        assert primitives.packed("h").pack(1) == b"\0\1"
        assert primitives.packed("hq") is primitives.packed("hq")

    @each_row("table", [primitives.unpackers("i"), primitives.packers("i"), primitives.packers("ix")])
    def test_a_peers_number_does_not_grow_a_table(self, table: dict[int, object]) -> None:
        before = set(table)
        for count in range(primitives.CACHED_COUNT_MAX + 1, primitives.CACHED_COUNT_MAX + 50):
            assert table[count] is not None
        assert set(table) == before
        assert table[5] is table[5]

    def test_short_arrays_are_unpacked_by_the_byte_of_their_length(self) -> None:
        table = primitives.short_arrays("h")
        for count in (1, 2, 126):
            data = bytes([9, count + 1]) + b"\1\2" * count
            assert [table[count + 1](data, 2) for _ in range(2)] == [(0x102,) * count] * 2
        assert primitives.short_arrays("h") is table

    def test_strings_are_unpacked_with_what_follows(self) -> None:
        table = primitives.after_strings("Bh")
        for size in (0, 1, 126):
            data = bytes([9, size + 1]) + b"x" * size + b"\3\1\2"
            assert [table[size + 1](data, 1) for _ in range(2)] == [(b"x" * size, 3, 0x102)] * 2
        assert primitives.after_strings("Bh") is table


class TestCheckCount:
    def test_accepts_lengths_that_the_bytes_can_hold(self) -> None:
        primitives.check_count(bytes(12), 4, 2, 4, "Isr")
        primitives.check_count(bytes(12), 4, -1, 4, "Isr")
        primitives.check_count(b"", 0, primitives.ZERO_SIZE_COUNT_MAX, 0, "Marks")

    @each_row(("o", "n", "size"), [(4, 3, 4), (12, 1, 1), (20, 1, 1), (0, 1 << 31, 16)])
    def test_refuses_more(self, o: int, n: int, size: int) -> None:
        with pytest.raises(WireError, match=f"an array of {n} elements"):
            primitives.check_count(bytes(12), o, n, size, "Isr")


class TestTags:
    @given(st.lists(st.tuples(st.integers(0, primitives.UINT32_MAX), st.binary(max_size=200)), max_size=200))
    def test_a_section_is_read_as_written_in_ascending_order(self, tags: list[tuple[int, bytes]]) -> None:
        section = primitives.write_tags(tags)
        read, end = primitives.read_tags(section, 1, section[0])
        assert list(read) == sorted(tags, key=lambda tag: tag[0])
        assert end == len(section)


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
