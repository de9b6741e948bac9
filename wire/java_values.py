"""What Java does with strings, numbers and maps where it shows in answers and records."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

K = TypeVar("K", int, str)
T = TypeVar("T")

_BLANKS: Final = "".join(map(chr, range(ord(" ") + 1)))
_COMMA_WITH_WHITESPACE: Final = re.compile(r"\s*,\s*", re.ASCII)


def trim(text: str) -> str:
    """String.trim: without characters up to the blank at both ends."""
    return text.strip(_BLANKS)


def split(text: str) -> list[str]:
    """`text.split(",")`: empty parts at the end are dropped, but an empty text is one empty part."""
    if not text:
        return [""]
    parts = text.split(",")
    while parts and not parts[-1]:
        parts.pop()
    return parts


def split_trimmed(text: str) -> list[str]:
    """The parts of a trimmed list between its commas, blanks around them dropped and empty parts kept."""
    return _COMMA_WITH_WHITESPACE.split(trim(text))


def utf16_length(text: str) -> int:
    """String.length: in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def double_text(number: float) -> str:
    """Double.toString."""
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
    """The entries as a java.util.HashMap with these keys, put one by one, iterates over them.

    By bucket, and in a bucket in the order they were put; the table doubles when it is more than three quarters full.
    `capacity` is what the map was made with: `new HashMap<>(capacity)`.
    """
    buckets = 1 << max(capacity - 1, 0).bit_length()
    while len(entries) > buckets * 3 // 4:
        buckets *= 2
    return sorted(entries.items(), key=lambda entry: _spread_hash(entry[0]) & (buckets - 1))


def in_timeline_map_order(entries: Mapping[K, T]) -> list[tuple[K, T]]:
    """The entries as one of Kafka's TimelineHashMaps with these keys, put one by one, iterates over them.

    By slot, and in a slot the last put first; right as long as nothing was taken out, as the table never shrinks
    (BaseHashTable).
    """
    slots = 2
    while len(entries) * 3 > slots * 4:
        slots *= 2
    shift = 65 - slots.bit_length()

    def slot(entry: tuple[K, T]) -> int:
        code = entry[0] if isinstance(entry[0], int) else _signed(_hash(entry[0]))
        return (code * -7046029254386353131 & 0xFFFFFFFF_FFFFFFFF) >> shift

    last_first = list(entries.items())
    last_first.reverse()
    return sorted(last_first, key=slot)


def _hash(text: str) -> int:
    """String.hashCode, as 32 bits without a sign."""
    code = 0
    for unit in _utf16_units(text):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def _spread_hash(text: str) -> int:
    code = _hash(text)
    return code ^ code >> 16


def _signed(code: int) -> int:
    return code - (1 << 32) if code >> 31 else code


def _utf16_units(text: str) -> Iterable[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return (data[at] << 8 | data[at + 1] for at in range(0, len(data), 2))
