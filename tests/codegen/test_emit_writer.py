"""Values that generated writers accept and refuse, for invented schemas and hand-written bytes."""

from typing import Any

import pytest
from mockraft.wire.errors import WireError

from ..rows import each_row
from .conftest import ID, NAME, MessageOf


class TestFixedFields:
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


class TestArrays:
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


class TestTags:
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
