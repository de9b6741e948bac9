"""A reassembler as bytes and back, for checkpoints of Spark, which may come from others.

A pickle may name any function, and calls it when it is read. Here it may name the classes of a reassembler's state
only, and what numpy and pyarrow make their arrays with; bytes with anything else are refused.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, Final

import pyarrow as pa
from mockraft.spark_replay.streams.reassembly import Reassembler

_OWN: Final = ("mockraft.spark_replay.streams.", "mockraft.spark_replay.spark.options")
_OTHERS: Final = {
    ("builtins", "bytearray"),
    ("collections", "OrderedDict"),
    ("collections", "deque"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("pyarrow.lib", "py_buffer"),
    ("pyarrow.lib", "type_for_alias"),
}
_ERRORS: Final = (pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, ImportError, LookupError)


class ForeignStateError(ValueError):
    """Raised for bytes that `dumps` did not make."""


def dumps(state: object) -> bytes:
    """Return a state as bytes."""
    return pickle.dumps(state)


def loads(data: bytes) -> Any:
    """Return the state in the bytes of `dumps`. Raises ForeignStateError."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except (*_ERRORS, MemoryError, TypeError, ValueError) as error:
        raise ForeignStateError(f"this is no state that mockraft saved: {error}") from error


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        """Return what a pickle names. Raises UnpicklingError for anything but the classes of a state."""
        if (module, name) == ("builtins", "getattr"):
            return _method
        if (module, name) == ("pyarrow.lib", "_restore_array"):
            return _texts
        is_own = module.startswith(_OWN) and "." not in name
        found = super().find_class(module, name) if is_own or (module, name) in _OTHERS else None
        if found is None or (is_own and not (isinstance(found, type) and found.__module__ == module)):
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return found


def _method(of: object, name: str) -> object:
    """Return the method by which a frame reader reports, which is all that a state has."""
    if not isinstance(of, Reassembler) or name != "_report":
        raise pickle.UnpicklingError(f"it names the attribute {name} of a {type(of).__name__}")
    return getattr(of, name)


def _texts(data: tuple[object, int, object, int, list[pa.Buffer], *tuple[object, ...]]) -> pa.Array:
    """Return an array of texts, the only ones in a state, whose lengths are those of its bytes."""
    _, length, _, offset, buffers, *_ = data
    texts = pa.Array.from_buffers(pa.string(), length, buffers, offset=offset)
    texts.validate(full=True)
    return texts
