"""Names, versions and sizes of specs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.codegen.names import snake
from mockraft.codegen.parse import parse
from mockraft.codegen.spec import FieldSpec, MessageSpec
from mockraft.codegen.versions import ALL, HIGHEST, NONE, Versions


def message(*fields: dict[str, Any]) -> MessageSpec:
    tree = {"type": "data", "name": "X", "validVersions": "0-3", "flexibleVersions": "2+", "fields": fields}
    return parse(json.dumps(tree), "X.json")


def field(kind: str, name: str = "F", versions: str = "0+", **keys: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions} | keys


ID = field("int32", "Id")


class TestFieldSpec:
    def only(self, tree: dict[str, Any]) -> FieldSpec:
        return message(tree).body.fields[0]

    def test_arrays_elements_and_structs_are_recognized(self) -> None:
        topics = self.only(field("[]Topic", fields=[ID]))
        assert (topics.is_array, topics.element, topics.struct) == (True, "Topic", "Topic")
        names = self.only(field("[]string"))
        assert (names.is_array, names.element, names.struct) == (True, "string", None)
        assert self.only(ID).struct is None

    def test_nullable_and_tagged_versions_are_recognized(self) -> None:
        spec = self.only(field("string", nullableVersions="1-2", taggedVersions="2+", tag=0))
        assert [spec.nullable_at(version) for version in range(4)] == [False, True, True, False]
        assert [spec.tagged_at(version) for version in range(4)] == [False, False, True, True]


class TestStructSpec:
    def test_divides_its_fields_by_version(self) -> None:
        tags = {"taggedVersions": "2+"}
        body = message(
            field("int8", "New", "1+"),
            field("int8", "Last", tag=5, **tags),
            field("int8", "First", "1+", tag=2, **tags),
        ).body
        assert [f.name for f in body.plain_at(0)] == ["Last"]
        assert [f.name for f in body.absent_at(0)] == ["New", "First"]
        assert [f.name for f in body.plain_at(2)] == ["New"]
        assert [f.name for f in body.tagged_at(2)] == ["First", "Last"]


class TestMessageSpec:
    def test_lengths_are_compact_in_flexible_versions_unless_the_field_opts_out(self) -> None:
        spec = message(field("string", "A"), field("string", "B", flexibleVersions="none"))
        a, b = spec.body.fields
        assert [spec.compact_at(a, version) for version in range(4)] == [False, False, True, True]
        assert not any(spec.compact_at(b, version) for version in range(4))

    @pytest.mark.parametrize(
        ("kind", "plain", "flexible"),
        [("int64", 8, 9), ("uuid", 16, 17), ("string", 2, 2), ("bytes", 4, 2), ("[]uuid", 4, 2)],
    )
    def test_the_smallest_size_of_a_struct(self, kind: str, plain: int, flexible: int) -> None:
        spec = message(field(kind))
        assert (spec.smallest_size(spec.body, 1), spec.smallest_size(spec.body, 2)) == (plain, flexible)

    def test_the_smallest_size_of_structs_in_structs(self) -> None:
        spec = message(
            field("Leader", "Leader", fields=[ID]),
            field("Cursor", "Cursor", fields=[ID], nullableVersions="0+"),
            field("[]Topic", "Topics", fields=[ID, field("string")]),
        )
        assert spec.smallest_size(spec.body, 0) == 4 + 1 + 4
        assert spec.element_size(spec.body.fields[2], 0) == 4 + 2
        assert spec.element_size(spec.body.fields[2], 2) == 4 + 1 + 1

    def test_structs_of_fixed_fields_have_one_size(self) -> None:
        fixed = [ID, field("uuid"), field("int8", "Tag", tag=0, taggedVersions="2+", versions="2+")]
        spec = message(
            field("[]Fixed", "A", fields=fixed), field("[]Loose", "B", fields=[ID, field("string", "S", "1+")])
        )
        assert spec.fixed_at(spec.structs["Fixed"], 0)
        assert spec.fixed_at(spec.structs["Fixed"], 2)
        assert spec.fixed_at(spec.structs["Loose"], 0)
        assert not spec.fixed_at(spec.structs["Loose"], 1)

    @pytest.mark.parametrize(
        ("fields", "shaped"),
        [
            ([ID, field("[]int32")], True),
            ([field("[]uuid", "A"), field("[]bool", "B")], True),
            ([ID], False),
            ([field("[]int32", nullableVersions="0+")], False),
            ([field("[]string")], False),
            ([field("[]int32"), field("string", "S")], False),
            ([field("[]int32"), field("[]int32", "Old", "0-1")], False),
        ],
    )
    def test_structs_with_arrays_of_values_have_a_shape_in_flexible_versions(self, fields: Any, shaped: bool) -> None:
        spec = message(field("[]Part", "Parts", fields=fields))
        assert spec.shaped_at(spec.structs["Part"], 2) == shaped
        assert not spec.shaped_at(spec.structs["Part"], 1)


RANGES = st.builds(lambda a, b: Versions(min(a, b), max(a, b)), st.integers(0, 12), st.integers(0, 12)) | st.just(NONE)


class TestVersions:
    @pytest.mark.parametrize(
        ("text", "low", "high"), [("3", 3, 3), ("0-2", 0, 2), ("7+", 7, HIGHEST), (" 1-4 ", 1, 4), ("0+", 0, HIGHEST)]
    )
    def test_parses_the_notation_of_schemas(self, text: str, low: int, high: int) -> None:
        assert Versions.parse(text) == (low, high)

    def test_none_is_empty(self) -> None:
        assert Versions.parse("none").empty
        assert list(NONE.numbers()) == []

    @pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1+2", "1,2", "0-40000", "+"])
    def test_refuses_anything_else(self, text: str) -> None:
        with pytest.raises(ValueError, match="version"):
            Versions.parse(text)

    @pytest.mark.parametrize("text", ["none", "5", "1-9", "2+"])
    def test_shows_itself_as_schemas_write_it(self, text: str) -> None:
        assert str(Versions.parse(text)) == text

    @given(RANGES, RANGES, st.integers(0, 13))
    def test_intersection_has_the_common_versions(self, one: Versions, other: Versions, version: int) -> None:
        assert one.intersect(other).has(version) == (one.has(version) and other.has(version))

    @given(RANGES, RANGES)
    def test_covers_requires_all_versions(self, one: Versions, other: Versions) -> None:
        assert one.covers(other) == all(one.has(version) for version in other.numbers())
        assert ALL.covers(one)


@pytest.mark.parametrize(
    ("kafka", "python"),
    [
        ("BrokerId", "broker_id"),
        ("timeoutMs", "timeout_ms"),
        ("Isr", "isr"),
        ("NewIsrWithEpochs", "new_isr_with_epochs"),
        ("KRaftVersion", "k_raft_version"),
        ("IsKRaftController", "is_k_raft_controller"),
        ("IncludeV2Names", "include_v2_names"),
        ("From", "from_"),
    ],
)
def test_words_are_separated_by_underscores_and_a_keyword_gets_one(kafka: str, python: str) -> None:
    assert snake(kafka) == python
