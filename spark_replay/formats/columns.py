"""Unaligned integers and headers gathered out of a chunk of bytes, many at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# What a chunk has after its bytes, so that a header may be gathered at any of them.
PADDING_BYTES = 64


def gather(buffer: Bytes, at: Longs, layout: np.dtype[Any]) -> npt.NDArray[Any]:
    """The headers of `layout` that start at each of `at`, as a structured array.

    Copying untyped items is quickest.
    """
    count = len(buffer) - layout.itemsize + 1
    items = np.ndarray((max(count, 0),), np.dtype((np.void, layout.itemsize)), buffer, 0, (1,))
    return items[at].view(layout)


def gather_u16(buffer: Bytes, at: Longs) -> Longs:
    """The big-endian 16-bit integers at each of `at`."""
    return buffer[at].astype(np.int64) << 8 | buffer[at + 1]
