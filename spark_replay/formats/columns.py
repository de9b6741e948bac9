"""Gather unaligned integers and headers out of a chunk of bytes, many at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Headers = npt.NDArray[np.void]
# Zero bytes after a chunk, so that a header can be gathered at any of its offsets.
PADDING_BYTES = 64


def gather(buffer: Bytes, at: Longs, layout: np.dtype[np.void]) -> Headers:
    """Return the headers of dtype `layout` that start at each of `at`, as a structured array.

    Copying untyped items is fastest.
    """
    count = len(buffer) - layout.itemsize + 1
    items = np.ndarray((max(count, 0),), np.dtype((np.void, layout.itemsize)), buffer, 0, (1,))
    return items[at].view(layout)


def gather_u16(buffer: Bytes, at: Longs) -> Longs:
    """Return the big-endian 16-bit integers at each of `at`."""
    return buffer[at].astype(np.int64) << 8 | buffer[at + 1]
