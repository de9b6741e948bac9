"""The slow paths and tables behind the generated readers and writers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.wire import primitives
from mockraft.wire.errors import WireError

from ..rows import each_row


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
