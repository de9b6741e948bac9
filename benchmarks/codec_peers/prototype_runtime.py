"""The smallest runtime under which a generated message can be imported, read and written.

It is the yardstick of the import time (import_times.py): the generated module is the same, and what mockraft adds (lazy
packages, errors that name the field, bounds) is missing.
"""

from struct import Struct as Packed
from struct import error

UNSET = ()
UVARINTS = tuple(bytes((value,)) for value in range(128))
UUIDS_HEADS = tuple(bytes((16 * count + 1, count + 1)) for count in range(8))
READ_FAULTS = (error, IndexError, KeyError, ValueError)
WRITE_FAULTS = (error, AttributeError, TypeError, ValueError)
accelerate = None


class Struct:
    __slots__ = ("unknown_tagged_fields",)


class Message(Struct):
    __slots__ = ()


class _Uuids(dict):
    def __init__(self, more):
        self.more = more

    def __missing__(self, count):
        made = self[count] = Packed(">" + "16s" * (count - self.more)).unpack_from
        return made


def unpackers(letter):
    return _Uuids(0)


def short_arrays(letter):
    return _Uuids(1)


def packed(letters):
    return Packed(">" + letters.replace("U", "16s").replace("o", "?"))


def decoded(cls):
    return type(cls.__name__, (cls,), {"__slots__": (), "__init__": object.__init__})


def failed(*what):
    return ValueError(what)


unreadable = unwritable = no_uuid = wrong_end = inexpressible = misplaced_tag = wrong_tag_size = failed


def compact_count(d, o, n, *_):
    if n > 127:
        raise failed(o)
    return n - 1, o


nullable_compact_count = compact_count


def tag_count(d, o, t):
    raise failed(o)


def tag_header(d, o):
    return d[o], d[o + 1], o + 2


def write_uvarint(n):
    return UVARINTS[n]


def write_tag(tag, parts):
    value = b"".join(parts)
    return bytes((tag, len(value))) + value


def uuids_head(count):
    raise failed(count)


def write_tags(unknown):
    return write_uvarint(len(unknown)) + b"".join(write_tag(tag, [value]) for tag, value in unknown)


def merge_tags(out, at, unknown, before):
    raise failed(at)
