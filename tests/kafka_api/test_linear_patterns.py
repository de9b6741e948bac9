"""Regular expressions of stubs and clients: the results of `re.search`, in linear time."""

import random
import re
import time
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mockraft.kafka_api.linear_patterns import CHECKED_LENGTH_MAX, Checks, PatternError, compiled

from ..budgets import budget
from ..rows import each_row

SHORT, LONG = 1_000, 16_000
GROWTH_MAX = 4 * LONG / SHORT
"""Linear time grows 16 times, quadratic time up to 256 times."""
ADVERSARIAL = [
    (".*.*.*=x", "a"),
    ("(a+)+$", "a"),
    ("(a|ab)*c", "ab"),
    ("(a?a)*b", "a"),
    (r"^(([a-z])+.)+[A-Z]$", "a"),
    (r"\s+$", " "),
    (r"\w+@\w+\.com", "a"),
    ("(?:x{1,9}){1,9}y", "x"),
    ("(a?){50}a{50}b", "a"),
    ("(.*a){20}c", "ab"),
    (r"(\b\w*\b ?)*!", "ab "),
    ("a.{40}c", "ab"),
]


@each_row(("pattern", "characters"), ADVERSARIAL)
def test_time_grows_with_the_length_of_the_text(pattern: str, characters: str) -> None:
    assert cpu_s(pattern, characters, LONG) < GROWTH_MAX * cpu_s(pattern, characters, SHORT)


def cpu_s(pattern: str, characters: str, size: int) -> float:
    text = "".join(random.Random(1).choices(characters, k=size)) + "#"
    found = compiled(pattern)
    spent = []
    for _ in range(3):  # the least: a garbage collection may fall into any one
        begin = time.process_time()
        assert not found.search(text)
        spent.append(time.process_time() - begin)
    return min(spent)


@each_row(
    ("pattern", "text"),
    [
        (r"^broker-\d+$", "broker-12"),
        (r"^(\d{1,3}\.){3}\d{1,3}$", "127.0.0.1"),
        (r"(?:\w+\.)+com", "a.b.com"),
        (r"[a-z]+-(raft|kafka)-.*", "x-raft-y"),
        (r"(?i)CLIENT-(?-i:A)\Z", "client-A"),
        (r"(?m)^second$", "first\nsecond"),
        (r"(?x) a \s b  # comment", "a b"),
        (r"\bkafka\B.", "kafkas"),
        ("(a*)*(b|)+?$", "ab\n"),
    ],
)
def test_patterns_that_people_write_are_accepted(pattern: str, text: str) -> None:
    assert compiled(pattern).search(text)


@each_row(
    ("pattern", "why"),
    [
        (r"(a)\1", "references to groups"),
        ("(a)?(?(1)b|c)", "references to groups"),
        ("(?=(a+)+b)", "look-around: combine conditions"),
        ("(?<!a)b", "look-around: combine conditions"),
        ("(?>a|ab)c", "atomic groups: an ordinary one"),
        ("a++b", "possessive repeats: an ordinary one"),
    ],
)
def test_pattern_that_needs_backtracking_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=f"more than linear time; not supported: {why}"):
        compiled(pattern)


@each_row("pattern", ["(.{1,100}){1,100}", "(){999999999}", "(((){999}){999}){999}", "a{3000}"])
def test_pattern_that_is_too_long_when_written_out_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="repeats too much"):
        compiled(pattern)


@each_row("pattern", ["(", "a{99999999999}", "(" * 500 + ")" * 500, "[z-a]", "(?P<a>x)(?P<a>y)"])
def test_invalid_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="is no regular expression"):
        compiled(pattern)


LEAVES = st.sampled_from([*"abéſK- .^$", *(f"\\{letter}" for letter in "nwWsdbBAZ"), "[ab]", "[^a]"])
PATTERNS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "??", "{2}", "{1,3}", "{0,2}?", "{2,}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
        st.tuples(st.sampled_from(["i", "s", "m", "a", "-i", "i-s"]), inner).map(
            lambda pair: f"(?{pair[0]}:{pair[1]})"
        ),
    ),
    max_leaves=8,
)
TEXTS = st.text(st.sampled_from("abAB- \n1éÉsſKk"), max_size=8)


@settings(max_examples=budget(500, 20_000))
@given(PATTERNS, st.sampled_from(["", "(?i)", "(?s)", "(?m)", "(?im)"]), st.lists(TEXTS, min_size=1, max_size=6))
@example(r"(?a:a\w)", "", ["aÉ"])
def test_finds_what_re_finds(pattern: str, flags: str, texts: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(flags + pattern)
    found, whole = compiled(flags + pattern), compiled(flags + pattern, whole=True)
    for text in texts:
        # Not `search`: it misses "É" for (?a:\W), as it looks for first characters without the flags of a group.
        is_found = any(expected.match(text, at) for at in range(len(text) + 1))
        assert found.search(text) is is_found, (flags + pattern, text)
        assert whole.search(text) is (expected.fullmatch(text) is not None), (flags + pattern, text)


def test_sets_are_compiled_once_and_have_a_limit() -> None:
    assert compiled("(?i)(?:[a-\uffff]{2}){200}").search("b" * 400)
    with pytest.raises(PatternError, match="ranges of more than 262144 characters"):
        compiled("(?i)" + "".join(f"[{chr(97 + n)}-\uffff]" for n in range(20)))


def test_checks_of_patterns_are_bounded_by_their_length_together() -> None:
    checks = Checks()
    checks.check("[a-\uffff]" * 1_000)
    for pattern, about in (("(", "is no regular expression"), ("a" * CHECKED_LENGTH_MAX, "of more than 65536")):
        with pytest.raises(PatternError, match=about):
            checks.check(pattern)
