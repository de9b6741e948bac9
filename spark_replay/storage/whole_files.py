"""Read and write whole files, each in one step: a reader finds all of it or none."""

from __future__ import annotations

from pathlib import Path

from mockraft.files import given_files
from mockraft.files.private_files import write_private
from mockraft.spark_replay.storage.locations import Location


def read_file(location: Location) -> bytes:
    """Return the bytes of a file. Raises FileNotFoundError, OSError."""
    if not location.is_remote:
        return given_files.read_file(location.path, given_files.TEXT_BYTES_MAX)
    with location.file_system().open_input_file(location.arrow_path) as file:
        content: bytes = file.read()
    return content


def write_file(location: Location, content: bytes) -> None:
    """Write a file, private on a local disk. Raises OSError."""
    if not location.is_remote:
        write_private(Path(location.path), content)
        return
    with location.file_system().open_output_stream(location.arrow_path) as file:
        file.write(content)
