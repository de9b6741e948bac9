"""The slow paths and tables behind the generated readers and writers.

Generated code handles the common case in line (one-byte lengths, known tags) and calls these functions for the rest:
long varints, nulls, unknown tagged fields, large arrays. None of them is called for a typical heartbeat.

Most bounds are checked once, at the end of a message: a slice past the end is short, the next fixed field then fails,
and an end offset beyond the data is refused. Only lengths that would allocate memory before that are checked first.
"""

from __future__ import annotations

from struct import Struct, error

from mockraft.wire.message import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Unpack = Callable[[bytes, int], tuple[Any, ...]]
    Pack = Callable[..., bytes]
    Spend = Callable[..., None]

UNSET: Any = ()
"""The default of constructor parameters whose field starts as a fresh list or struct."""

ZERO_UUID = bytes(16)
"""Kafka's `Uuid.ZERO_UUID`."""

STRING_BYTES_MAX = 0x7FFF
"""Maximum string size in bytes, compact or not, as in Kafka's generated classes."""

UINT32_MAX = 0xFFFFFFFF
"""Maximum value of an unsigned varint: a tag, a size, a compact length."""

ZERO_SIZE_COUNT_MAX = 0xFFFF
"""Maximum length of an array whose elements take no bytes: nothing else bounds their number."""

CACHED_COUNT_MAX = 256
"""Maximum array length whose Struct is cached: the length comes from the peer and must not grow a table."""

FLAT_COUNT_MAX = 64
"""Maximum number of structs of several fields that are packed in one call; each number has a cached Struct."""

UVARINTS: tuple[bytes, ...] = Struct("c" * 128).unpack(bytes(range(128)))
"""The encoded unsigned varints of one byte."""

READ_FAULTS = (WireError, error, IndexError, KeyError, UnicodeDecodeError, OverflowError)
"""Exceptions that malformed bytes can raise inside a generated reader."""

WRITE_FAULTS = (error, AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""Exceptions that a value which does not fit its field can raise inside a generated writer."""

_TWO_BYTES = Struct("BB").pack
UUIDS_HEADS = tuple(bytes((16 * count + 1, count + 1)) for count in range(8))
"""The size of a tagged field that is an array of so many uuids, and its length."""

_structs: dict[str, Struct] = {}


def packed(letters: str) -> Struct:
    """Return the cached big-endian Struct of format letters; `U` stands for a uuid's bytes and `o` for a bool."""
    found = _structs.get(letters)
    if found is None:
        found = _structs[letters] = Struct(">" + letters.replace("U", "16s").replace("o", "?"))
    return found


def _repeated(letters: str, count: int) -> Struct:
    """Return the Struct of that many repetitions of the letters; not cached, unlike `packed`."""
    text = letters.replace("U", "16s").replace("o", "?")
    return Struct(">" + (f"{count}{text}" if len(text) == 1 else text * count))


class _ByCount(dict):  # type: ignore[type-arg]
    """Functions by count that pack or unpack that many values or structs of one format, made on first use."""

    def __init__(self, letters: str, method: str) -> None:
        """Create the table; `method` is the name of the Struct method to return."""
        self._letters = letters
        self._method = method

    def __missing__(self, count: int) -> Any:
        made = getattr(_repeated(self._letters, count), self._method)
        if count <= CACHED_COUNT_MAX:
            self[count] = made
        return made


_unpackers: dict[str, dict[int, Unpack]] = {}
_packers: dict[str, dict[int, Pack]] = {}


def unpackers(letter: str) -> dict[int, Unpack]:
    """Return functions by count that return an array's values at an offset as a tuple."""
    found = _unpackers.get(letter)
    if found is None:
        found = _unpackers[letter] = _ByCount(letter, "unpack_from")
    return found


def packers(letters: str) -> dict[int, Pack]:
    """Return functions by count that return an array's bytes, or those of structs with all values flat."""
    found = _packers.get(letters)
    if found is None:
        found = _packers[letters] = _ByCount(letters, "pack")
    return found


_short: dict[str, list[Unpack]] = {}
_after_strings: dict[str, list[Unpack]] = {}


def short_arrays(letter: str) -> list[Unpack]:
    """Return, by the byte of a compact length, functions that return an array's values at an offset as a tuple.

    They are made on first use; the length's byte is the one before the offset.
    """
    found = _short.get(letter)
    if found is None:

        def first(d: bytes, o: int) -> tuple[Any, ...]:
            unpack = table[d[o - 1]] = unpackers(letter)[d[o - 1] - 1]
            return unpack(d, o)

        table = found = _short[letter] = [first] * 128
    return found


def after_strings(letters: str) -> list[Unpack]:
    """Return, by the byte of a compact string's length, functions that unpack the string's bytes and what follows.

    They are made on first use; the offset is that of the length's byte.
    """
    found = _after_strings.get(letters)
    if found is None:

        def first(d: bytes, o: int) -> tuple[Any, ...]:
            unpack = table[d[o]] = Struct(f">x{d[o] - 1}s{packed(letters).format[1:]}").unpack_from
            return unpack(d, o)

        table = found = _after_strings[letters] = [first] * 128
    return found


_string_packers: dict[str, list[Pack]] = {}


def string_packers(letters: str) -> list[Pack]:
    """Return, by the byte of a compact string's length, functions that pack a string (`s`) and the fields around it.

    They are made on first use; the length's byte is the value before the string.
    """
    found = _string_packers.get(letters)
    if found is None:

        def first(*values: Any) -> bytes:
            n = values[len(before) - 1]
            pack = table[n] = Struct(f"{packed(before).format}{max(n - 1, 0)}s{packed(after).format[1:]}").pack
            return pack(*values)

        before, after = letters.split("s")
        table = found = _string_packers[letters] = [first] * 128
    return found


def null_field(field: str, offset: int | None = None) -> WireError:
    """Return the error for a null that the version does not allow."""
    return WireError("null in a field that cannot be null", field=field, offset=offset)


# Reading. `d` is the data, `o` the offset after the first byte of the length, `n` that byte.


def uvarint(d: bytes, o: int) -> tuple[int, int]:
    """Read an unsigned varint at `o`; at most five bytes and 32 bits. Kafka's `ByteUtils.readUnsignedVarint`."""
    n = d[o]
    return (n, o + 1) if n < 128 else long_uvarint(d, o + 1, n)


def long_uvarint(d: bytes, o: int, n: int) -> tuple[int, int]:
    """Read the rest of a varint after its first byte `n`; return its value and the offset after it."""
    start = o - 1
    n &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = d[o]
        o += 1
        n |= (byte & 0x7F) << shift
        if byte < 128:
            if n > UINT32_MAX:
                break
            return n, o
    raise WireError("a varint of more than 32 bits", offset=start)


def compact_length(d: bytes, o: int, n: int) -> tuple[int, int]:
    """Read a compact length after its first byte `n`; -1 for null."""
    if n < 128:
        return n - 1, o
    second = d[o]
    if second < 128:
        return (n & 0x7F | second << 7) - 1, o + 1
    n, o = long_uvarint(d, o, n)
    return n - 1, o


def compact_string(d: bytes, o: int, n: int, field: str) -> tuple[str, int]:
    """Read a compact string that is null (refused) or has a long length."""
    text, o = nullable_compact_string(d, o, n, field)
    if text is None:
        raise null_field(field, o)
    return text, o


def nullable_compact_string(d: bytes, o: int, n: int, field: str) -> tuple[str | None, int]:
    """Read a compact string that is null or has a long length."""
    n, o = compact_length(d, o, n)
    if n < 0:
        return None, o
    if n > STRING_BYTES_MAX:
        raise WireError(f"a string of {n} bytes; the longest has {STRING_BYTES_MAX}", field=field, offset=o)
    return d[o : o + n].decode(), o + n


def compact_bytes(d: bytes, o: int, n: int, field: str) -> tuple[bytes, int]:
    """Read compact bytes that are null (refused) or have a long length."""
    block, o = nullable_compact_bytes(d, o, n, field)
    if block is None:
        raise null_field(field, o)
    return block, o


def nullable_compact_bytes(d: bytes, o: int, n: int, field: str) -> tuple[bytes | None, int]:
    """Read compact bytes that are null or have a long length."""
    n, o = compact_length(d, o, n)
    return (None, o) if n < 0 else (d[o : o + n], o + n)


def compact_count(d: bytes, o: int, n: int, size: int, field: str) -> tuple[int, int]:
    """Read the length of a compact array that is null (refused) or long; each element takes at least `size` bytes."""
    n, o = nullable_compact_count(d, o, n, size, field)
    if n < 0:
        raise null_field(field, o)
    return n, o


def nullable_compact_count(d: bytes, o: int, n: int, size: int, field: str) -> tuple[int, int]:
    """Read the length of a compact array, -1 for null; each element takes at least `size` bytes."""
    n, o = compact_length(d, o, n)
    check_count(d, o, n, size, field)
    return n, o


def check_count(d: bytes, o: int, n: int, size: int, field: str) -> None:
    """Refuse an array length that the remaining bytes cannot hold, before anything is allocated."""
    most = (len(d) - o) // size if size else ZERO_SIZE_COUNT_MAX
    if n > most:
        raise WireError(f"an array of {n} elements where {max(most, 0)} fit", field=field, offset=o)


def read_tags(d: bytes, o: int, t: int, s: Spend | None = None) -> tuple[Sequence[tuple[int, bytes]], int]:
    """Read a tag section without known tags, whose count starts with the byte `t`."""
    if t > 127:
        t, o = tag_count(d, o, t)
    if s:
        s(t, 0)
    found: list[tuple[int, bytes]] = []
    for _ in range(t):
        tag, size, o = tag_header(d, o)
        found.append((tag, d[o : o + size]))
        o += size
    return found or (), o


def tag_count(d: bytes, o: int, t: int) -> tuple[int, int]:
    """Read the number of tagged fields of a section whose count starts with the byte `t`, which is above 127."""
    t, o = long_uvarint(d, o, t)
    check_count(d, o, t, 2, "tagged fields")
    return t, o


def tag_header(d: bytes, o: int) -> tuple[int, int, int]:
    """Read tag and size of a tagged field at `o`; return them with the offset of its value."""
    tag, o = uvarint(d, o)
    size, o = uvarint(d, o)
    if size > len(d) - o:
        raise WireError(f"tagged field {tag} has {size} bytes where {max(len(d) - o, 0)} are left", offset=o)
    return tag, size, o


def wrong_tag_size(field: str, offset: int) -> WireError:
    """Return the error for a tagged field whose size differs from that of its value."""
    return WireError("the tagged field's size is not its value's", field=field, offset=offset)


def wrong_end(end: int, size: int) -> WireError:
    """Return the error for a message that does not end where its bytes end."""
    if end > size:
        return WireError(f"the bytes end {end - size} too soon", offset=size)
    return WireError(f"{size - end} bytes too many", offset=end)


def misplaced_tag(field: str, offset: int) -> WireError:
    """Return the error for a tag that only other versions of the message know, as in Kafka's generated classes."""
    return WireError("the tag is not valid in this version", field=field, offset=offset)


# Writing.


def write_uvarint(n: int) -> bytes:
    """Encode an unsigned varint."""
    if n < 128:
        return UVARINTS[n]
    if n < 1 << 14:
        return _TWO_BYTES(n & 0x7F | 0x80, n >> 7)
    out = bytearray()
    while n > 127:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def write_string_length(n: int, field: str) -> bytes:
    """Encode the compact length of a string; `n` is its size plus one."""
    if n > STRING_BYTES_MAX + 1:
        raise WireError(f"a string of {n - 1} bytes; the longest has {STRING_BYTES_MAX}", field=field)
    return write_uvarint(n)


def inexpressible(field: str) -> WireError:
    """Return the error for a value that the version has no field for."""
    return WireError("the version has no such field, and its value is not the default", field=field)


def no_tags() -> WireError:
    """Return the error for unknown tagged fields in a version without tag sections."""
    return WireError("the version has no tagged fields", field="unknown_tagged_fields")


def no_uuid(field: str) -> WireError:
    """Return the error for a uuid that is not 16 bytes."""
    return WireError("a uuid has 16 bytes", field=field)


def pack_flat(packs: dict[int, Pack], values: list[Any], width: int) -> bytes:
    """Pack structs of `width` values each, the values of all of them in one list; `packs` are functions by count."""
    most = FLAT_COUNT_MAX * width
    if len(values) <= most:
        return packs[len(values) // width](*values)
    return b"".join([pack_flat(packs, values[at : at + most], width) for at in range(0, len(values), most)])


def write_tags(unknown: Sequence[tuple[int, bytes]]) -> bytes:
    """Encode a tag section without known tags: ascending, equal tags in the order they arrived."""
    out = [write_uvarint(len(unknown))]
    for tag, value in sorted(unknown, key=_tag_of):
        if not 0 <= tag <= UINT32_MAX:
            raise WireError(f"{tag} is no tag", field="unknown_tagged_fields")
        out += (write_uvarint(tag), write_uvarint(len(value)), value)
    return b"".join(out)


def write_tag(tag: int, parts: list[bytes]) -> bytes:
    """Encode one tagged field from the parts of its value."""
    value = b"".join(parts)
    size = len(value)
    if tag < 128 and size < 128:
        return _TWO_BYTES(tag, size) + value
    return b"".join((write_uvarint(tag), write_uvarint(size), value))


def uuids_head(count: int) -> bytes:
    """Encode the size of a tagged field that is an array of so many uuids, and its length."""
    length = write_uvarint(count + 1)
    return write_uvarint(16 * count + len(length)) + length


def merge_tags(out: list[bytes], at: int, unknown: Sequence[tuple[int, bytes]], before: bytes) -> None:
    """Complete a tag section that begins at `out[at]`, followed by its known tags; `before` are the bytes before it."""
    known: list[tuple[int, bytes]] = []
    d, o = b"".join(out[at + 1 :]), 0
    while o < len(d):
        tag, size, o = tag_header(d, o)
        known.append((tag, d[o : o + size]))
        o += size
    both = {tag for tag, _ in known} & {tag for tag, _ in unknown}
    if both:
        raise WireError(f"tag {min(both)} is both a field's and unknown", field="unknown_tagged_fields")
    out[at:] = [before + write_tags([*known, *unknown])]


def _tag_of(pair: tuple[int, bytes]) -> int:
    return pair[0]
