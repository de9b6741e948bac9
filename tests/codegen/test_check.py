"""Schemas that parse but cannot become code."""

import json
from typing import Any

import pytest
from mockraft.codegen.check import check
from mockraft.codegen.parse import parse
from mockraft.codegen.spec import SpecError

GOOD = {"name": "A", "type": "int32", "versions": "0+"}


def checked(*fields: dict[str, Any]) -> None:
    tree = {"type": "request", "name": "XRequest", "validVersions": "0-3", "flexibleVersions": "2+", "fields": fields}
    check(parse(json.dumps(tree), "x.json"))


class TestCheck:
    def test_passes_a_sound_schema(self) -> None:
        checked(GOOD, {"name": "B", "type": "[]uuid", "versions": "0+", "taggedVersions": "2+", "tag": 0})

    @pytest.mark.parametrize(
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
