"""Ranges of versions in specs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.codegen.versions import ALL, HIGHEST, NONE, Versions

from ..rows import each_row

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
