"""Java's behaviour for strings, numbers and maps, as far as it is visible in responses and records."""

import re
import sys
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import accumulate, repeat
from operator import mul
from typing import Final, TypeVar

K = TypeVar("K", int, str)
T = TypeVar("T")

_BLANKS: Final = "".join(map(chr, range(ord(" ") + 1)))
_INTEGER: Final = re.compile(r"[+-]?\d+")
_WHITESPACE: Final = " \t\n\v\f\r"
_SHORT: Final = 16
"""Units of a text for which a loop in Python is quicker."""
_UTF16: Final = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"


def trim(text: str) -> str:
    """Java's String.trim: remove characters up to U+0020 at both ends."""
    return text.strip(_BLANKS)


def parse_integer(text: str, bits: int = 32) -> int | None:
    """Java's Integer.parseInt (Long.parseLong for 64 `bits`), or None where that fails.

    The digits may be those of any script, and may begin with any number of zeros.
    """
    # A digit beyond U+FFFF is two characters in Java, and none of them a digit.
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        return None
    digits = "".join(str(unicodedata.decimal(digit)) for digit in text.lstrip("+-")).lstrip("0")
    if len(digits) > bits:
        return None
    number = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def split(text: str) -> list[str]:
    """Java's `text.split(",")`: trailing empty parts are dropped, but an empty text gives one empty part."""
    if not text:
        return [""]
    parts = text.split(",")
    while parts and not parts[-1]:
        parts.pop()
    return parts


def split_trimmed(text: str) -> list[str]:
    """Split the trimmed text at commas; strip each part and keep empty ones.

    Java's pattern for it (`\\s*,\\s*`) takes a time that is quadratic in the number of blanks.
    """
    return [part.strip(_WHITESPACE) for part in trim(text).split(",")]


def utf16_length(text: str) -> int:
    """Java's String.length: the number of UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode(_UTF16, "surrogatepass")) // 2


def double_text(number: float) -> str:
    """Java's Double.toString."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    scale = int(exponent or 0) - len(fraction) + len(digits) - 1
    digits = digits.rstrip("0")
    return f"{'-' if number < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{scale}"


def in_hash_map_order(entries: Mapping[str, T], capacity: int = 16) -> list[tuple[str, T]]:
    """Return the entries in the iteration order of a java.util.HashMap after inserting these keys one by one.

    Ordered by bucket, and by insertion within a bucket; the table doubles when it is more than three quarters full.
    `capacity` is the initial capacity: `new HashMap<>(capacity)`.
    """
    if len(entries) < 2:
        return [*entries.items()]
    buckets = 1 << max(capacity - 1, 0).bit_length()
    while len(entries) > buckets * 3 // 4:
        buckets *= 2

    def bucket(entry: tuple[str, T]) -> int:
        code = _hash(entry[0])
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(entries.items(), key=bucket)


def in_timeline_map_order(entries: Mapping[K, T], size_max: int = 0) -> list[tuple[K, T]]:
    """Return the entries in the iteration order of Kafka's TimelineHashMap after inserting these keys one by one.

    Ordered by slot, last inserted first within a slot. The table never shrinks: `size_max` is the largest number of
    entries that it made room for, if that was more than there are (BaseHashTable.baseAddOrReplace makes room for one
    more even if it only replaces an entry).
    """
    if len(entries) < 2:
        return list(entries.items())
    slots = 2
    while max(len(entries), size_max) * 3 > slots * 4:
        slots *= 2
    shift = 65 - slots.bit_length()

    def slot(entry: tuple[K, T]) -> int:
        code = entry[0] if isinstance(entry[0], int) else _signed(_hash(entry[0]))
        return (code * -7046029254386353131 & 0xFFFFFFFF_FFFFFFFF) >> shift

    last_first = list(entries.items())
    last_first.reverse()
    return sorted(last_first, key=slot)


def hash_code(text: str) -> int:
    """Java's String.hashCode."""
    return _signed(_hash(text))


def _hash(text: str) -> int:
    """Java's String.hashCode as an unsigned 32-bit number."""
    # A request may have megabytes of names: the sum s[0]·31ⁿ⁻¹ + … + s[n-1] is computed without a loop in Python.
    units = text.encode() if text.isascii() else memoryview(text.encode(_UTF16, "surrogatepass")).cast("H")
    total = 0
    if len(units) <= _SHORT:
        for unit in units:
            total = total * 31 + unit
    else:
        total = sum(map(mul, reversed(units), _powers_of_31(len(units).bit_length())))
    return total & 0xFFFFFFFF


@cache
def _powers_of_31(bits: int) -> list[int]:
    """Return the first 2 ** bits powers, modulo 2 ** 32."""
    return [*accumulate(repeat(31, (1 << bits) - 1), lambda power, by: power * by & 0xFFFFFFFF, initial=1)]


def _signed(code: int) -> int:
    return code - (1 << 32) if code >> 31 else code
