"""Render the JSON of many frames of one shape at once, from one template with a column for each value.

Equal structure means equal JSON except for the values. The text between the values is made once, and Arrow joins it
with columns of numbers, uuids and strings. The result is identical to that of `json_form` and `json.dumps`.
"""

from __future__ import annotations

from binascii import b2a_base64
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from mockraft.spark_replay.decoding.json_text import of_bytes, of_float, of_string, of_uuid
from mockraft.spark_replay.decoding.layout import FIXED, Group, Leaf, Node
from mockraft.wire.json_form import UNKNOWN_TAGS
from mockraft.wire.message import Message
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema_of

Bytes = npt.NDArray[np.uint8]

INTEGERS = {"int8": ">i1", "int16": ">i2", "uint16": ">u2", "int32": ">i4", "uint32": ">u4", "int64": ">i8"}
"""numpy dtypes of the schema's integer types."""

_REPEATED_BYTES_MAX = 64
_STRING = pa.string()
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_TRUTH = {False: "false", True: "true"}
_UNSAFE = np.array([byte < 0x20 or byte > 0x7E or byte in b'"\\' for byte in range(256)])


class Template:
    """The JSON of a shape's bodies: literal text, and a leaf for each value."""

    def __init__(self, cls: type[Message], version: int, tree: Group) -> None:
        self._pieces: list[str | Leaf] = []
        self._struct(schema_of(cls).root, version, tree)
        leaves = [piece for piece in self._pieces if isinstance(piece, Leaf)]
        self._starts = np.array([leaf.offset for leaf in leaves], np.int64)
        self._ends = self._starts + np.array([leaf.length for leaf in leaves], np.int64)

    def _struct(self, spec: StructSpec, version: int, group: Group) -> None:
        before = "{"
        for field in spec.fields:
            if field.versions.covers(version) and field.json_name in group.fields:
                self._pieces.append(f'{before}"{field.json_name}":')
                self._value(field, version, group.fields[field.json_name])
                before = ","
        if group.unknown:
            self._pieces.append(f'{before}"{UNKNOWN_TAGS}":')
            for index, (tag, leaf) in enumerate(group.unknown):
                self._pieces += [f'{"," if index else "["}{{"tag":{tag},"data":', leaf, "}"]
            self._pieces.append("]")
            before = ","
        self._pieces.append("{}" if before == "{" else "}")

    def _value(self, spec: FieldSpec, version: int, node: Node) -> None:
        if node is None:
            self._pieces.append("null")
        elif isinstance(node, list):
            self._pieces.append("[")
            for index, element in enumerate(node):
                if index:
                    self._pieces.append(",")
                self._value(spec, version, element)
            self._pieces.append("]")
        elif isinstance(node, Leaf):
            self._pieces.append(node)
        else:
            assert spec.struct is not None
            self._struct(spec.struct, version, node)

    def write(self, frames: Bytes) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the JSON of frames (rows of bytes), and a mask of the rows for which it is valid.

        Rows with strings that need escaping are not rendered here.
        """
        first = frames[0].tobytes()
        # Number of bytes before each offset that are not the same in all frames.
        varying = np.concatenate(((0,), np.cumsum((frames != frames[0]).any(axis=0))))
        varies = iter((varying[self._ends] != varying[self._starts]).tolist())
        right = np.ones(len(frames), np.bool_)
        texts: list[str] = []
        parts: list[str | pa.Array] = []
        for piece in self._pieces:
            if isinstance(piece, str):
                texts.append(piece)
            elif next(varies):
                parts += ["".join(texts), _column(piece, frames, right)]
                texts = []
            else:
                of_one = _repeated_text if piece.length <= _REPEATED_BYTES_MAX else _text
                texts.append(of_one(piece.kind, first[piece.offset : piece.offset + piece.length]))
        text = "".join(texts)
        if not parts:
            return pa.repeat(text, len(frames)), right
        return pc.binary_join_element_wise(*parts, text, ""), right


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
