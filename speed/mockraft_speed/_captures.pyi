from mmap import mmap

import numpy as np
import numpy.typing as npt

Data = bytes | bytearray | memoryview | mmap | npt.NDArray[np.uint8]

def records(buffer: Data, size: int, is_big_endian: bool, /) -> bytes:
    """Return the starts of a pcap file's records in the first `size` bytes."""

def requests(buffer: Data, at: int, end: int, frame_bytes_max: int, /) -> tuple[int, bytes]:
    """Return why the walk over requests stops, and `at` with the ends of the whole ones."""

def responses(buffer: Data, at: int, end: int, frame_bytes_max: int, /) -> tuple[int, bytes]:
    """Return why the walk over responses stops, and `at` with the ends of the whole ones."""

def gather(buffer: Data, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], /) -> tuple[bytes, bytes]:
    """Return the 32-bit offsets and the bytes of slices of a buffer, as Arrow has them."""

def render(
    frames: npt.NDArray[np.uint8], size: int, leaves: npt.NDArray[np.int64], texts: tuple[bytes, ...], /
) -> tuple[bytes, bytes, bytes]:
    """Return JSON of frames of one size as 32-bit offsets and bytes, and which rows need no escaping; others are empty.

    `leaves` are rows of a kind (a number from `shape_json.RENDERED`), an offset in the frame and a length, `texts` what
    is before, between and after them.
    """
