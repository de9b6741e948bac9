"""Schema files as specs: parsed, with their ranges of versions, checked, and the errors for faulty ones."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.codegen.check import check
from mockraft.codegen.parse import parse, parse_json
from mockraft.codegen.spec import SpecError
from mockraft.codegen.versions import ALL, HIGHEST, NONE, Versions

from ..rows import each_row

FIELD = {"name": "BrokerId", "type": "int32", "versions": "0+"}


def schema(*fields: dict[str, Any], **keys: Any) -> str:
    tree = {"type": "request", "name": "XRequest", "validVersions": "0-3", "flexibleVersions": "2+", "fields": fields}
    return json.dumps(tree | keys)


class TestParse:
    def test_skips_comment_lines_and_keeps_slashes_in_text(self) -> None:
        about = {"name": "Url", "type": "string", "versions": "0+", "about": "http://kafka.apache.org"}
        spec = parse("// a licence\n  // more of it\n" + schema(about), "x.json")
        assert spec.body.fields[0].about == "http://kafka.apache.org"

    def test_a_message_of_no_version_needs_no_fields(self) -> None:
        tree = {"apiKey": 5, "type": "request", "name": "StopReplicaRequest", "validVersions": "none"}
        assert parse(json.dumps(tree), "x.json").valid_versions.empty

    @each_row(
        ("kind", "given", "default"),
        [
            ("int32", "0x7fffffff", 2147483647),
            ("int32", "-2147483648", -2147483648),
            ("int64", "9223372036854775807", 9223372036854775807),
            ("int64", -1, -1),
            ("bool", "False", False),
            ("bool", "true", True),
            ("bool", False, False),
            ("string", "", ""),
            ("string", "null", None),
            ("[]int32", "null", None),
            ("float64", "1.5", 1.5),
        ],
    )
    def test_reads_defaults_as_schemas_write_them(self, kind: str, given: object, default: object) -> None:
        field = {"name": "F", "type": kind, "versions": "0+", "default": given}
        if given == "null":
            field["nullableVersions"] = "0+"
        assert parse(schema(field), "x.json").body.fields[0].default == default

    @each_row(
        ("field", "complaint"),
        [
            ({"name": "F", "versions": "0+"}, "XRequest.F: 'type' is missing"),
            ({"type": "int8", "versions": "0+"}, "XRequest: 'name' is missing"),
            ({"name": "F", "type": "int8", "versions": "zero"}, "XRequest.F: versions: 'zero' is not a version range"),
            ({"name": "F", "type": "int8", "versions": "0+", "colour": 1}, "XRequest.F: unknown key 'colour'"),
            ({"name": "F", "type": "int8", "versions": "0+", "default": "200"}, "'200' is no int8: out of range"),
            ({"name": "F", "type": "bool", "versions": "0+", "default": "yes"}, "'yes' is no bool"),
            ({"name": "F", "type": "int8", "versions": "0+", "default": "null"}, "the default is null"),
            ({"name": "F", "type": "[]int8", "versions": "0+", "default": "7"}, "only null can be given"),
            ({"name": "F", "type": "int8", "versions": "0+", "fields": [FIELD]}, "XRequest.F: a int8 has no fields"),
        ],
    )
    def test_names_file_and_field_of_a_fault(self, field: dict[str, Any], complaint: str) -> None:
        with pytest.raises(SpecError) as caught:
            parse(schema(field), "schemas/XRequest.json")
        assert str(caught.value).startswith("schemas/XRequest.json: ")
        assert complaint in str(caught.value)

    def test_names_the_line_of_broken_json(self) -> None:
        with pytest.raises(SpecError, match=r"x\.json: line 3: "):
            parse('// comment\n{\n  "name" 5\n}', "x.json")

    def test_refuses_a_struct_that_is_described_twice(self) -> None:
        fields = [{"name": name, "type": "T", "versions": "0+", "fields": [FIELD]} for name in ("A", "B")]
        with pytest.raises(SpecError, match="the struct T is described twice"):
            parse(schema(*fields), "x.json")

    def test_parse_json_gives_the_bare_tree(self) -> None:
        assert parse_json('// c\n{"name": "X"}\n', "x.json") == {"name": "X"}


GOOD = {"name": "A", "type": "int32", "versions": "0+"}


def checked(*fields: dict[str, Any]) -> None:
    tree = {"type": "request", "name": "XRequest", "validVersions": "0-3", "flexibleVersions": "2+", "fields": fields}
    check(parse(json.dumps(tree), "x.json"))


class TestCheck:
    def test_passes_a_sound_schema(self) -> None:
        checked(GOOD, {"name": "B", "type": "[]uuid", "versions": "0+", "taggedVersions": "2+", "tag": 0})

    @each_row(
        ("field", "complaint"),
        [
            ({"name": "B", "type": "Unheard", "versions": "0+"}, "XRequest.B: unknown type 'Unheard'"),
            ({"name": "B", "type": "[][]int8", "versions": "0+"}, "arrays of arrays"),
            ({"name": "B", "type": "int8", "versions": "0+", "nullableVersions": "0+"}, "a int8 cannot be null"),
            ({"name": "B", "type": "int8", "versions": "0+", "tag": 0}, "tag and taggedVersions belong together"),
            ({"name": "B", "type": "int8", "versions": "0+", "taggedVersions": "2+"}, "belong together"),
            ({"name": "B", "type": "int8", "versions": "3+", "taggedVersions": "2+", "tag": 0}, "the field has not"),
            ({"name": "B", "type": "int8", "versions": "0+", "taggedVersions": "1+", "tag": 0}, "not flexible"),
            ({"name": "a", "type": "int8", "versions": "0+"}, "a second field is called a"),
            ({"name": "ApiKey", "type": "int8", "versions": "0+"}, "the Python name api_key is taken"),
            ({"name": "B", "type": "Struct", "versions": "0+", "fields": [GOOD]}, "cannot have this name"),
            ({"name": "B", "type": "XRequest", "versions": "0+", "fields": [GOOD]}, "cannot have this name"),
        ],
    )
    def test_names_file_and_field_of_a_fault(self, field: dict[str, Any], complaint: str) -> None:
        with pytest.raises(SpecError) as caught:
            checked(GOOD, field)
        assert str(caught.value).startswith("x.json: ")
        assert complaint in str(caught.value)

    def test_refuses_a_tag_that_is_used_twice(self) -> None:
        tagged = [{"name": n, "type": "int8", "versions": "2+", "taggedVersions": "2+", "tag": 1} for n in ("B", "C")]
        with pytest.raises(SpecError, match="version 2 uses a tag twice"):
            checked(*tagged)

    def test_a_tag_may_have_another_field_in_another_version(self) -> None:
        checked(
            {"name": "B", "type": "int8", "versions": "2", "taggedVersions": "2", "tag": 1},
            {"name": "C", "type": "int8", "versions": "3", "taggedVersions": "3", "tag": 1},
        )


RANGES = st.builds(lambda a, b: Versions(min(a, b), max(a, b)), st.integers(0, 12), st.integers(0, 12)) | st.just(NONE)


class TestVersions:
    @each_row(
        ("text", "low", "high"), [("3", 3, 3), ("0-2", 0, 2), ("7+", 7, HIGHEST), (" 1-4 ", 1, 4), ("0+", 0, HIGHEST)]
    )
    def test_parses_the_notation_of_schemas(self, text: str, low: int, high: int) -> None:
        assert Versions.parse(text) == (low, high)

    def test_none_is_empty(self) -> None:
        assert Versions.parse("none").empty
        assert list(NONE.numbers()) == []

    @each_row("text", ["", "a", "1-", "-1", "3-1", "1+2", "1,2", "0-40000", "+"])
    def test_refuses_anything_else(self, text: str) -> None:
        with pytest.raises(ValueError, match="version"):
            Versions.parse(text)

    @each_row("text", ["none", "5", "1-9", "2+"])
    def test_shows_itself_as_schemas_write_it(self, text: str) -> None:
        assert str(Versions.parse(text)) == text

    @given(RANGES, RANGES, st.integers(0, 13))
    def test_intersection_has_the_common_versions(self, one: Versions, other: Versions, version: int) -> None:
        assert one.intersect(other).has(version) == (one.has(version) and other.has(version))

    @given(RANGES, RANGES)
    def test_covers_requires_all_versions(self, one: Versions, other: Versions) -> None:
        assert one.covers(other) == all(one.has(version) for version in other.numbers())
        assert ALL.covers(one)
