"""Input and values that generated code accepts and refuses, for invented schemas and hand-written bytes."""

from typing import Any

import pytest
from mockraft.wire.errors import WireError

from ..rows import each_row
from .conftest import ID, NAME, MessageOf

NULLABLE_NAME = NAME | {"nullableVersions": "0+"}
ISR = {"name": "Isr", "type": "[]int32", "taggedVersions": "0+", "tag": 1, "nullableVersions": "0+", "default": "null"}
LATER = {"name": "Fenced", "type": "int8", "versions": "1+", "taggedVersions": "1+", "tag": 2}


def read(cls: Any, text: str, version: int = 0) -> Any:
    return cls.read(bytes.fromhex(text), version)


class TestFixedFields:
    def test_are_big_endian_and_of_their_own_sign(self, message_of: MessageOf) -> None:
        kinds = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64")
        cls = message_of(*({"name": f"F{i}", "type": kind} for i, kind in enumerate(kinds)))
        message = read(cls, "01 ff fffe fffe fffffffd fffffffd fffffffffffffffc 3ff8000000000000")
        values = [getattr(message, f"f{i}") for i in range(len(kinds))]
        assert values == [True, -1, -2, 65534, -3, 4294967293, -4, 1.5]

    def test_any_byte_but_zero_is_true(self, message_of: MessageOf) -> None:
        message = read(message_of({"name": "On", "type": "bool"}), "07")
        assert message.on is True
        assert message.write(0) == b"\x01"

    def test_trailing_bytes_are_refused_with_their_place(self, message_of: MessageOf) -> None:
        with pytest.raises(WireError, match=r"TestRequest v0: 1 bytes too many \(offset 4\)"):
            read(message_of(ID), "00000001 00")


class TestStrings:
    @each_row(("flexible", "data", "name"), [("none", "0002 c3a4", "ä"), ("0+", "03 6162 00", "ab")])
    def test_have_two_bytes_of_length_or_a_varint_of_one_more(
        self, message_of: MessageOf, flexible: str, data: str, name: str
    ) -> None:
        assert read(message_of(NAME, flexibleVersions=flexible), data).name == name

    @each_row("length", ["ffff", "8000"])
    def test_any_negative_length_is_null(self, message_of: MessageOf, length: str) -> None:
        assert read(message_of(NULLABLE_NAME), length).name is None

    @each_row("length", ["00", "8000", "808000", "8080808000"])
    def test_an_overlong_zero_is_null_too(self, message_of: MessageOf, length: str) -> None:
        assert read(message_of(NULLABLE_NAME, flexibleVersions="0+"), f"{length} 00").name is None
        with pytest.raises(WireError, match=r"null in a field that cannot be null \(field Name"):
            read(message_of(NAME, flexibleVersions="0+"), f"{length} 00")

    @each_row("length", ["8100", "81808000"])
    def test_an_overlong_one_is_empty(self, message_of: MessageOf, length: str) -> None:
        assert read(message_of(NAME, flexibleVersions="0+"), f"{length} 00").name == ""

    @each_row("length", ["ffffffff1f", "8080808080", "808080808001"])
    def test_a_length_of_more_than_32_bits_is_refused(self, message_of: MessageOf, length: str) -> None:
        with pytest.raises(WireError, match=r"a varint of more than 32 bits \(offset 0\)"):
            read(message_of(NULLABLE_NAME, flexibleVersions="0+"), f"{length} 00")

    def test_have_at_most_32767_bytes_even_with_a_varint(self, message_of: MessageOf) -> None:
        cls = message_of(NULLABLE_NAME, flexibleVersions="0+")
        assert len(cls.read(b"\x80\x80\x02" + b"a" * 32767 + b"\0", 0).name) == 32767
        with pytest.raises(WireError, match="a string of 32768 bytes; the longest has 32767"):
            cls.read(b"\x81\x80\x02" + b"a" * 32768 + b"\0", 0)

    def test_have_to_be_utf8(self, message_of: MessageOf) -> None:
        with pytest.raises(WireError, match=r"a string is not UTF-8: .* \(offset"):
            read(message_of(NAME), "0002 ff41")

    def test_cannot_be_null_where_the_version_has_no_null(self, message_of: MessageOf) -> None:
        later = NAME | {"nullableVersions": "1+"}
        cls = message_of(later, validVersions="0-1")
        assert read(cls, "ffff", 1).name is None
        with pytest.raises(WireError, match="field Name"):
            read(cls, "ffff", 0)


class TestArrays:
    @each_row("kind", ["[]int32", "[]uuid", "[]string", "[]bytes", "[]Topic", "[]Pair"])
    def test_length_beyond_the_bytes_allocates_no_memory(self, message_of: MessageOf, kind: str) -> None:
        fields = {"[]Topic": {"fields": [NAME]}, "[]Pair": {"fields": [ID]}}.get(kind, {})
        cls = message_of({"name": "All", "type": kind} | fields, validVersions="0-1", flexibleVersions="1+")
        with pytest.raises(WireError):
            read(cls, "7fffffff 00000000")
        with pytest.raises(WireError, match="an array of 4294967294 elements where"):
            read(cls, "ffffffff0f 00000000", 1)

    def test_elements_without_bytes_have_a_bounded_number(self, message_of: MessageOf) -> None:
        cls = message_of({"name": "Marks", "type": "[]Mark", "fields": []})
        assert len(read(cls, "00000003").marks) == 3
        with pytest.raises(WireError, match="an array of 65536 elements where 65535 fit"):
            read(cls, "00010000")

    def test_structs_of_fixed_fields_keep_their_unknown_tags(self, message_of: MessageOf) -> None:
        pairs = {"name": "Pairs", "type": "[]Pair", "fields": [ID]}
        plain = read(message_of(pairs, ID), "00000002 00000001 00000002 00000009")
        assert ([pair.id for pair in plain.pairs], plain.id) == ([1, 2], 9)
        text = "04 00000001 00 00000002 01 07 01 aa 00000003 00 00000009 00"
        message = read(message_of(pairs, ID, flexibleVersions="0+"), text)
        assert [pair.id for pair in message.pairs] == [1, 2, 3]
        assert [list(pair.unknown_tagged_fields) for pair in message.pairs] == [[], [(7, b"\xaa")], []]
        assert message.id == 9
        assert message.write(0) == bytes.fromhex(text)


class TestTags:
    def cls(self, message_of: MessageOf) -> Any:
        return message_of(ID, ISR, LATER, validVersions="0-1", flexibleVersions="0+")

    def test_known_tags_become_fields_and_the_last_value_wins(self, message_of: MessageOf) -> None:
        cls = self.cls(message_of)
        for tags, isr, fenced in (
            ("02 01 05 02 00000009 02 01 07", [9], 7),
            ("00", None, 0),
            ("02 02 01 07 02 01 08", None, 8),
        ):
            message = read(cls, f"00000005 {tags}", 1)
            assert (message.isr, message.fenced, list(message.unknown_tagged_fields)) == (isr, fenced, [])

    def test_unknown_ones_are_kept(self, message_of: MessageOf) -> None:
        text = "00000005 03 00 02 0102 01 05 02 00000009 c801 00"
        message = read(self.cls(message_of), text)
        assert message.unknown_tagged_fields == [(0, b"\x01\x02"), (200, b"")]
        assert message.write(0) == bytes.fromhex(text)

    def test_long_counts_and_sizes(self, message_of: MessageOf) -> None:
        body = (
            b"".join(bytes((0x80 | tag & 0x7F, tag >> 7, 0)) for tag in range(300, 500))
            + b"\xf4\x03\x80\x01"
            + b"x" * 128
        )
        data = bytes(4) + b"\xc9\x01" + body
        message = self.cls(message_of).read(data, 0)
        assert len(message.unknown_tagged_fields) == 201
        assert message.unknown_tagged_fields[-1] == (500, b"x" * 128)
        assert message.write(0) == data

    def test_tag_of_other_versions_is_refused(self, message_of: MessageOf) -> None:
        with pytest.raises(WireError, match=r"not valid in this version \(field Fenced"):
            read(self.cls(message_of), "00000005 01 02 01 07", 0)

    @each_row("section", ["01 02 02 0700", "01 01 06 02 00000009 00", "01 01 04 02 00000009"])
    def test_a_size_that_is_not_the_values_is_refused(self, message_of: MessageOf, section: str) -> None:
        with pytest.raises(WireError, match="the tagged field's size is not its value's"):
            read(self.cls(message_of), f"00000005 {section}", 1)

    @each_row("section", ["01 09 05 aa", "01 09 ffffffff0f aa", "ffffffff0f", "8101 00", "03 09 00"])
    def test_sizes_and_counts_beyond_the_bytes_are_refused(self, message_of: MessageOf, section: str) -> None:
        with pytest.raises(WireError):
            read(self.cls(message_of), f"00000005 {section}", 1)


class TestWrittenFixedFields:
    @each_row(
        ("kind", "values"),
        [
            ("int8", [128, -129]),
            ("int16", [1 << 15]),
            ("uint16", [-1, 1 << 16]),
            ("int32", [1 << 31, 1.0, None, "1"]),
            ("uint32", [1 << 32]),
            ("int64", [1 << 63]),
            ("float64", ["x"]),
            ("uuid", [b"short", bytes(17), "0123456789abcdef", None]),
        ],
    )
    @each_row("flexible", ["none", "0+"])
    def test_a_value_that_does_not_fit_is_refused(
        self, message_of: MessageOf, flexible: str, kind: str, values: list[object]
    ) -> None:
        cls = message_of({"name": "F", "type": kind}, flexibleVersions=flexible)
        for value in values:
            with pytest.raises(WireError, match="TestRequest v0"):
                cls(f=value).write(0)


class TestBlocks:
    @each_row("kind", ["string", "bytes", "records"])
    def test_null_is_refused_where_the_version_has_none(self, message_of: MessageOf, kind: str) -> None:
        field = {"name": "F", "type": kind, "nullableVersions": "1+"}
        cls = message_of(field, validVersions="0-2", flexibleVersions="2+")
        with pytest.raises(WireError):
            cls(f=None).write(0)
        assert cls(f=None).write(1) == (b"\xff\xff" if kind == "string" else b"\xff\xff\xff\xff")
        assert cls(f=None).write(2) == b"\0\0"

    @each_row("flexible", ["none", "0+"])
    def test_a_string_has_at_most_32767_bytes(self, message_of: MessageOf, flexible: str) -> None:
        cls = message_of(NAME, flexibleVersions=flexible)
        assert len(cls(name="a" * 32767).write(0)) > 32767
        with pytest.raises(WireError):
            cls(name="ä" * 16384).write(0)

    @each_row(("kind", "value"), [*(("string", each) for each in (b"b", 7, "\ud800")), ("bytes", "text")])
    def test_text_is_what_utf8_has_and_bytes_are_none(self, message_of: MessageOf, kind: str, value: object) -> None:
        with pytest.raises(WireError):
            message_of({"name": "F", "type": kind})(f=value).write(0)


class TestWrittenArrays:
    def test_a_number_that_does_not_fit_is_refused(self, message_of: MessageOf) -> None:
        with pytest.raises(WireError):
            message_of({"name": "Isr", "type": "[]int32"}, flexibleVersions="0+")(isr=[1, 1 << 40]).write(0)

    def test_of_uuids_of_16_bytes_each(self, message_of: MessageOf) -> None:
        cls = message_of({"name": "Dirs", "type": "[]uuid"})
        assert cls(dirs=[bytes(16)] * 2).write(0) == b"\0\0\0\2" + bytes(32)
        with pytest.raises(WireError, match=r"a uuid has 16 bytes \(field Dirs\)"):
            cls(dirs=[bytes(15), bytes(17)]).write(0)

    @each_row("count", [1, 9, 300])
    def test_many_structs_of_one_field_are_the_same_bytes_as_few(self, message_of: MessageOf, count: int) -> None:
        cls = message_of({"name": "All", "type": "[]One", "fields": [ID]}, validVersions="0-1", flexibleVersions="1+")
        one = type(cls.read(b"\0\0\0\1\0\0\0\0", 0).all[0])
        ones = []
        for i in range(count):
            ones.append(one())
            ones[-1].id, ones[-1].unknown_tagged_fields = i, ()
        message = cls(all=ones)
        assert message.write(0)[4:] == b"".join(i.to_bytes(4, "big") for i in range(count))
        ones[0].unknown_tagged_fields = [(3, b"")]
        written = message.write(1)
        assert b"\0\0\0\0\1\3\0" in written
        assert cls.read(written, 1) == message

    @each_row("count", [8, 9, 64, 65, 130])
    def test_many_structs_of_two_fields_are_the_same_bytes_as_few(self, message_of: MessageOf, count: int) -> None:
        epoch = {"name": "Epoch", "type": "int64", "versions": "0+"}
        cls = message_of({"name": "All", "type": "[]Two", "fields": [ID, epoch]}, flexibleVersions="0+")
        two = type(cls.read(b"\2" + bytes(14), 0).all[0])
        message = cls(all=[])
        for i in range(count):
            message.all.append(two())
            message.all[i].id, message.all[i].epoch, message.all[i].unknown_tagged_fields = i, -i, ()
        few = [cls(all=message.all[start : start + 5]) for start in range(0, count, 5)]
        head = 1 if count < 127 else 2
        assert message.write(0)[head:-1] == b"".join(each.write(0)[1:-1] for each in few)
        message.all[3].unknown_tagged_fields = [(3, b"")]
        assert cls.read(message.write(0), 0) == message
        message.all[7].epoch = 1 << 63
        with pytest.raises(WireError):
            message.write(0)


class TestWrittenTags:
    def test_known_and_unknown_tags_are_ascending(self, message_of: MessageOf) -> None:
        cls = message_of({"name": "Level", "type": "int16", "taggedVersions": "0+", "tag": 5}, flexibleVersions="0+")
        message = cls(level=1, unknown_tagged_fields=[(9, b"\x09"), (2, b"\x02")])
        assert message.write(0) == bytes.fromhex("03 0201 02 0502 0001 0901 09")
        with pytest.raises(WireError, match="tag 5 is both a field's and unknown"):
            cls(level=1, unknown_tagged_fields=[(5, b"")]).write(0)

    def test_of_the_same_number_keep_their_order(self, message_of: MessageOf) -> None:
        data = bytes.fromhex("03 0701 02 0701 01 0700")
        assert message_of(flexibleVersions="0+").read(data, 0).write(0) == data

    def test_are_refused_in_versions_without_tags(self, message_of: MessageOf) -> None:
        cls = message_of(ID, validVersions="0-1", flexibleVersions="1+")
        assert cls(unknown_tagged_fields=[(3, b"")]).write(1) == bytes.fromhex("00000000 01 03 00")
        with pytest.raises(WireError, match="the version has no tagged fields"):
            cls(unknown_tagged_fields=[(3, b"")]).write(0)

    def test_of_high_numbers_are_written(self, message_of: MessageOf) -> None:
        tagged = {"name": "Level", "type": "int16", "taggedVersions": "0+", "tag": 300}
        assert message_of(tagged, flexibleVersions="0+")(level=1).write(0) == bytes.fromhex("01 ac02 02 0001")

    @each_row("unknown", [[(-1, b"")], [(1 << 32, b"")], [(1, "text")], [5], [("a", b"")]])
    def test_nonsense_is_refused(self, message_of: MessageOf, unknown: Any) -> None:
        with pytest.raises(WireError):
            message_of(flexibleVersions="0+")(unknown_tagged_fields=unknown).write(0)

    @each_row(
        ("field", "default", "other"),
        [
            ({"type": "int16", "default": "7"}, 7, 0),
            ({"type": "bool", "default": "true"}, True, False),
            ({"type": "string"}, "", "x"),
            ({"type": "string", "nullableVersions": "0+", "default": "null"}, None, ""),
            ({"type": "string", "nullableVersions": "0+"}, "", None),
            ({"type": "[]int32", "nullableVersions": "0+", "default": "null"}, None, []),
            ({"type": "[]int32", "nullableVersions": "0+"}, [], None),
            ({"type": "[]uuid"}, [], [bytes(16)]),
            ({"type": "uuid"}, bytes(16), b"0123456789abcdef"),
            ({"type": "bytes"}, b"", b"x"),
        ],
    )
    def test_are_left_out_at_their_default_only(
        self, message_of: MessageOf, field: dict[str, Any], default: object, other: object
    ) -> None:
        cls = message_of({"name": "F", "taggedVersions": "0+", "tag": 0} | field, flexibleVersions="0+")
        assert cls(f=default).write(0) == b"\0"
        assert cls(f=other).write(0)[:2] == b"\1\0"
        assert cls.read(cls(f=other).write(0), 0).f == other

    def test_struct_at_its_defaults_is_omitted(self, message_of: MessageOf) -> None:
        state = {"name": "State", "type": "State", "taggedVersions": "0+", "tag": 0, "fields": [ID]}
        message = message_of(state, flexibleVersions="0+")()
        assert message.write(0) == b"\0"
        message.state.unknown_tagged_fields = [(1, b"")]
        assert message.write(0) == bytes.fromhex("01 00 07 00000000 01 01 00")


class TestFieldsOfOtherVersions:
    @each_row(
        ("field", "value"),
        [
            ({"type": "int32", "default": "-1"}, 0),
            ({"type": "bool"}, True),
            ({"type": "string", "nullableVersions": "0+", "default": "null"}, ""),
            ({"type": "[]int32"}, [1]),
            ({"type": "[]int32", "nullableVersions": "0+", "default": "null"}, []),
            ({"type": "uuid"}, bytes(15) + b"\1"),
            ({"type": "bytes"}, b"x"),
        ],
    )
    def test_are_refused_unless_ignorable_or_at_their_default(
        self, message_of: MessageOf, field: dict[str, Any], value: object
    ) -> None:
        field = {"name": "F", "versions": "1+"} | field
        cls = message_of(ID, field, validVersions="0-1")
        assert cls().write(0) == bytes(4)
        with pytest.raises(WireError, match=r"the version has no such field, .* \(field F\)"):
            cls(f=value).write(0)
        assert cls.read(cls(f=value).write(1), 1).f == value
        assert message_of(ID, field | {"ignorable": True}, validVersions="0-1")(f=value).write(0) == bytes(4)

    def test_of_structs_in_arrays_are_refused_too(self, message_of: MessageOf) -> None:
        fields = [ID, {"name": "Level", "type": "int16", "versions": "1+"}]
        cls = message_of({"name": "All", "type": "[]One", "fields": fields}, validVersions="0-1")
        message = cls.read(bytes.fromhex("00000001 00000005 0007"), 1)
        with pytest.raises(WireError, match="field Level"):
            message.write(0)
