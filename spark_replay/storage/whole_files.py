"""Read, write and delete whole files and folders, each file in one step: a reader finds all of it or none."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

from mockraft.files.private_files import DIRECTORY_MODE, opener, write_private
from mockraft.spark_replay.storage.listing import exists
from mockraft.spark_replay.storage.locations import Location


def read_file(location: Location) -> bytes:
    """Return the bytes of a file. Raises FileNotFoundError, OSError."""
    if not location.is_remote:
        return Path(location.path).read_bytes()
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


def open_for_writing(location: Location) -> Any:
    """Return a new binary file; in an object store it appears when it is closed. Raises OSError."""
    if not location.is_remote:
        return open(location.path, "wb", opener=opener)
    return location.file_system().open_output_stream(location.arrow_path)


def create_folder(location: Location) -> None:
    """Create a folder with its parents, private on a disk; an object store needs its bucket only. Raises OSError."""
    if not location.is_remote:
        Path(location.path).mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    elif not location.is_object_store:
        location.file_system().create_dir(location.arrow_path, recursive=True)
    elif not exists(location._replace(path="")):
        raise FileNotFoundError(errno.ENOENT, "no such bucket", str(location._replace(path="")))


def delete_folder(location: Location) -> None:
    """Delete a folder with its contents, if it exists. Raises OSError."""
    if not location.is_remote:
        shutil.rmtree(location.path, ignore_errors=True)
        return
    system = location.file_system()
    if location.scheme == "gs":  # where pyarrow deletes an object for the folder, too, and fails if there is none
        system.delete_dir_contents(location.arrow_path, missing_dir_ok=True)
    elif system.get_file_info(location.arrow_path).type.name == "Directory":
        system.delete_dir(location.arrow_path)
