import re

from hypothesis import given
from hypothesis import strategies as st
from mockraft.wire import java_values

from ..rows import each_row


@each_row(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (2.0, "2.0"),
        (-0.1, "-0.1"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-1.25e-5, "-1.25E-5"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12_345_678.25, "1.234567825E7"),
        (1e300, "1.0E300"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (0.0, "0.0"),
    ],
)
def test_shows_a_double_as_java_does(number: float, text: str) -> None:
    assert java_values.double_text(number) == text


@each_row(
    ("text", "parts"),
    [("", [""]), (",", []), ("a", ["a"]), ("a,,b,,", ["a", "", "b"]), (",a", ["", "a"]), (" a , b ", [" a ", " b "])],
)
def test_splits_at_commas_and_drops_empty_parts_at_the_end(text: str, parts: list[str]) -> None:
    assert java_values.split(text) == parts


@each_row(("text", "parts"), [("a , b", ["a", "b"]), ("a,,b,", ["a", "", "b", ""]), ("\ta\n", ["a"]), ("", [""])])
def test_splits_a_trimmed_list_and_keeps_empty_parts(text: str, parts: list[str]) -> None:
    assert java_values.split_trimmed(text) == parts


def test_trims_control_characters_but_no_unicode_blanks() -> None:
    assert java_values.trim("\x00\x1f a\u00a0\t") == "a\u00a0"


def test_counts_a_character_beyond_the_basic_plane_twice() -> None:
    assert java_values.utf16_length("a\u20ac\U0001f600") == 4


@each_row(
    ("keys", "order"),
    [
        # As Kafka's controller wrote the ConfigRecords of a request with these keys.
        (["retention.ms", "segment.ms", "flush.ms"], ["flush.ms", "retention.ms", "segment.ms"]),
        # "Aa" and "BB" have the same String.hashCode: in one bucket they stay in the order they were put.
        (["BB", "Aa"], ["BB", "Aa"]),
        (["Aa", "BB"], ["Aa", "BB"]),
    ],
)
def test_iterates_as_a_hash_map_does(keys: list[str], order: list[str]) -> None:
    assert [key for key, _ in java_values.in_hash_map_order(dict.fromkeys(keys))] == order


def test_the_table_doubles_with_the_thirteenth_key() -> None:
    twelve = dict.fromkeys("pabcdefghijk")
    assert next(key for key, _ in java_values.in_hash_map_order(twelve)) == "p"
    thirteen = dict.fromkeys("pabcdefghijkl")
    assert [key for key, _ in java_values.in_hash_map_order(thirteen)][-1] == "p"


def test_iterates_as_a_hash_map_of_another_size_does() -> None:
    # As Kafka's controller wrote the entities of ClientQuotaRecords, whose map is made for three.
    assert [key for key, _ in java_values.in_hash_map_order({"user": 1, "client-id": 2}, 3)] == ["client-id", "user"]
    assert [key for key, _ in java_values.in_hash_map_order({"BB": 1, "Aa": 2}, 0)] == ["BB", "Aa"]


def test_iterates_as_a_timeline_hash_map_does() -> None:
    # Which broker Kafka's controller named first of those that do not support a level.
    assert [key for key, _ in java_values.in_timeline_map_order(dict.fromkeys([1, 3, 8, 12, 21]))] == [12, 1, 21, 8, 3]
    assert [key for key, _ in java_values.in_timeline_map_order({"BB": 1, "Aa": 2})] == ["Aa", "BB"], "in one slot"


@each_row(
    ("text", "bits", "number"),
    [
        ("7", 32, 7),
        ("+7", 32, 7),
        ("-0", 32, 0),
        ("2147483647", 32, 2_147_483_647),
        ("2147483648", 32, None),
        ("2147483648", 64, 2_147_483_648),
        ("-2147483648", 32, -2_147_483_648),
        ("-2147483649", 32, None),
        ("9223372036854775808", 64, None),
        ("0" * 5_000 + "1", 32, 1),
        ("9" * 5_000, 64, None),
        ("٣", 32, 3),
        ("\N{MATHEMATICAL BOLD DIGIT ONE}", 32, None),
        ("²", 32, None),
        *((text, 32, None) for text in ("", "+", "-", "+-1", " 1", "1 ", "1_0", "1.0", "0x1")),
    ],
)
def test_parses_integers_as_java_does(text: str, bits: int, number: int | None) -> None:
    assert java_values.parse_integer(text, bits) == number


@given(st.text("ab, \t\n\v\f\r\x1c\x00\u00a0", max_size=20))
def test_a_text_is_split_as_by_javas_pattern(text: str) -> None:
    pattern = re.compile(r"\s*,\s*", re.ASCII)
    assert java_values.split_trimmed(text) == pattern.split(java_values.trim(text))
