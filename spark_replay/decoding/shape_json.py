"""Render the JSON of many frames of one shape at once, from one template with a column for each value.

Equal structure means equal JSON except for the values. The text between the values is made once, and Arrow joins it
with columns of numbers, uuids and strings. The result is identical to that of `json_form` and `json.dumps`.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.accelerated import captures
from mockraft.spark_replay.decoding.json_text import of_bytes, of_float, of_string, of_uuid
from mockraft.spark_replay.decoding.layout import Group, Leaf, Node
from mockraft.wire.json_form import UNKNOWN_TAGS
from mockraft.wire.message import Message
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of
from mockraft.wire.schema_reading import FIXED

Bytes = npt.NDArray[np.uint8]

INTEGERS = {"int8": ">i1", "int16": ">i2", "uint16": ">u2", "int32": ">i4", "uint32": ">u4", "int64": ">i8"}
"""numpy dtypes of the schema's integer types."""
RENDERED = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), 0),
    **dict.fromkeys(("uint16", "uint32"), 1),
    "bool": 2,
    "string": 3,
    "uuid": 4,
    "bytes": 5,
    "records": 5,
}
"""Types that mockraft-speed renders, by their numbers in C."""

_REPEATED_BYTES_MAX = 64
_STRING = pa.string()
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_TRUTH = {False: "false", True: "true"}
_UNSAFE = np.array([byte < 0x20 or byte > 0x7E or byte in b'"\\' for byte in range(256)])


class Template:
    """The JSON of a shape's bodies: literal texts, and a leaf for each value between two of them."""

    def __init__(self, cls: type[Message], version: int, tree: Group) -> None:
        self._literals = [""]
        self._leaves: list[Leaf] = []
        self._struct(schema_of(cls).root, version, tree)
        self._starts = np.array([leaf.offset for leaf in self._leaves], np.int64)
        self._lengths = np.array([leaf.length for leaf in self._leaves], np.int64)
        self._places = np.concatenate([np.arange(leaf.length) + leaf.offset for leaf in self._leaves] or [self._starts])
        self._constant: tuple[bytes, bytes] | None = None
        self._texts: list[str] = []

    def _text(self, text: str) -> None:
        self._literals[-1] += text

    def _leaf(self, leaf: Leaf) -> None:
        self._leaves.append(leaf)
        self._literals.append("")

    def _struct(self, spec: StructSpec, version: int, group: Group) -> None:
        before = "{"
        for field in spec.fields:
            if field.versions.covers(version) and field.json_name in group.fields:
                self._text(f'{before}"{field.json_name}":')
                self._value(field, version, group.fields[field.json_name])
                before = ","
        if group.unknown:
            self._text(f'{before}"{UNKNOWN_TAGS}":')
            for index, (tag, leaf) in enumerate(group.unknown):
                self._text(f'{"," if index else "["}{{"tag":{tag},"data":')
                self._leaf(leaf)
                self._text("}")
            self._text("]")
            before = ","
        self._text("{}" if before == "{" else "}")

    def _value(self, spec: FieldSpec, version: int, node: Node) -> None:
        if node is None:
            self._text("null")
        elif isinstance(node, list):
            self._text("[")
            for index, element in enumerate(node):
                if index:
                    self._text(",")
                self._value(spec, version, element)
            self._text("]")
        elif isinstance(node, Leaf):
            self._leaf(node)
        else:
            assert spec.struct is not None
            self._struct(spec.struct, version, node)

    def write(self, frames: Bytes) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the JSON of frames (rows of bytes), or one for all, and a mask of the rows for which it is valid.

        Rows with strings that need escaping are not rendered here.
        """
        first = frames[0]
        # Number of bytes before each offset that are not the same in all frames.
        varying = np.concatenate(((0,), np.cumsum((frames != first).any(axis=0))))
        varies = varying[self._starts + self._lengths] != varying[self._starts]
        leaves, texts = [*compress(self._leaves, varies)], self._between(varies, first)
        if not leaves:
            return pa.array(texts), np.ones(len(frames), np.bool_)
        if captures is None or not all(leaf.kind in RENDERED for leaf in leaves):
            return pure_render(frames, leaves, texts)
        packed = np.array([(RENDERED[leaf.kind], leaf.offset, leaf.length) for leaf in leaves], np.int64)
        encoded = tuple(text.encode() for text in texts)
        offsets, json, right = captures.render(frames, frames.shape[1], packed, encoded)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(json)]
        return pa.Array.from_buffers(_STRING, len(frames), buffers), np.frombuffer(right, np.bool_)

    def _between(self, varies: npt.NDArray[np.bool_], frame: Bytes) -> list[str]:
        """Return the text before, between and after the leaves that vary: mostly that of the last call."""
        leaves = np.repeat(varies, self._lengths)
        constant = varies.tobytes(), frame[self._places][~leaves].tobytes()
        if constant != self._constant:
            texts = [[self._literals[0]]]
            data = frame.tobytes()
            for leaf, literal, is_varying in zip(self._leaves, self._literals[1:], varies.tolist(), strict=True):
                if is_varying:
                    texts.append([literal])
                else:
                    of_one = _repeated_text if leaf.length <= _REPEATED_BYTES_MAX else _text
                    texts[-1] += [of_one(leaf.kind, data[leaf.offset : leaf.offset + leaf.length]), literal]
            self._constant, self._texts = constant, ["".join(each) for each in texts]
        return self._texts


def pure_render(frames: Bytes, leaves: Sequence[Leaf], texts: Sequence[str]) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return texts and the leaves between them for every frame, as `Template.write` does."""
    right = np.ones(len(frames), np.bool_)
    parts: list[str | pa.Array] = []
    for text, leaf in zip(texts, leaves, strict=False):
        parts += [text, _column(leaf, frames, right)]
    return pc.binary_join_element_wise(*parts, texts[-1], ""), right


def _column(leaf: Leaf, frames: Bytes, right: npt.NDArray[np.bool_]) -> pa.Array:
    """Return a leaf's JSON in every frame."""
    content = frames[:, leaf.offset : leaf.offset + leaf.length]
    if leaf.kind in INTEGERS:
        values = np.ascontiguousarray(content).view(INTEGERS[leaf.kind]).ravel()
        return pa.array(values.astype(values.dtype.newbyteorder("="))).cast(pa.string())
    if leaf.kind == "bool":
        return pa.array(content[:, 0] != 0).cast(pa.string())
    if leaf.kind == "float64":
        return pa.array([_text(leaf.kind, value.tobytes()) for value in content], pa.string())
    if leaf.kind == "string":
        unsafe = np.logical_or.reduce(_UNSAFE[content], axis=1)
        right &= ~unsafe
        content = np.where(unsafe[:, None], np.uint8(0x20), content)
        return fixed_strings(_quoted(content))
    if leaf.kind == "uuid":
        return fixed_strings(_quoted(_base64(content, _URL_SAFE)[:, :22]))
    return fixed_strings(_quoted(_base64(content)))


def _text(kind: str, data: bytes) -> str:
    """Return one value's JSON, as `json_text` writes it."""
    if kind == "string":
        return of_string(data.decode())
    if kind == "uuid":
        return of_uuid(data)
    fixed = FIXED.get(kind)
    if fixed is None:
        return of_bytes(data)
    (value,) = fixed.unpack(data)
    return of_float(value) if kind == "float64" else _TRUTH[value] if kind == "bool" else str(value)


_repeated_text = lru_cache(1 << 14)(_text)


def _base64(content: Bytes, alphabet: bytes | None = None) -> Bytes:
    """Return the base64 of rows of bytes: of all at once, since rows of whole groups of three do not mix."""
    rows, length = content.shape
    groups = -(-length // 3)
    padded = np.zeros((rows, groups * 3), np.uint8)
    padded[:, :length] = content
    encoded = b2a_base64(padded.data, newline=False)
    text = np.frombuffer(bytearray(encoded.translate(alphabet)), np.uint8).reshape(rows, groups * 4)
    missing = groups * 3 - length
    if missing:
        text[:, -missing:] = ord("=")
    return text


def _quoted(text: Bytes) -> Bytes:
    quoted = np.full((len(text), text.shape[1] + 2), ord('"'), np.uint8)
    quoted[:, 1:-1] = text
    return quoted


def uuid_texts(content: Bytes) -> pa.Array:
    """Return the texts of rows of 16 bytes."""
    return fixed_strings(_base64(content, _URL_SAFE)[:, :22])


def fixed_strings(content: Bytes, kind: pa.DataType = _STRING) -> pa.Array:
    """Return rows of bytes as a column of strings (which must be valid) or binary."""
    rows, length = content.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(length)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content))]
    return pa.Array.from_buffers(kind, rows, buffers)
