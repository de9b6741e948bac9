"""Tables that appear whole: parts are staged next to the table, and the driver publishes those of counted attempts.

Each attempt of a task writes a part with a name of its own into the hidden folder `.NAME.being-written`. Where folders
can be renamed (disks, HDFS) the parts become the table's folder in one step. An object store has no rename: the parts
are copied by the store to names that no earlier table had, then one write of `_SUCCESS`, which lists them, makes them
the table, and then the parts of the earlier table are deleted. Readers here follow `_SUCCESS`, so they take all of the
earlier table or all of the new one; one that still reads the earlier when it is deleted ends with an error
(docs/explanation/decisions/parquet-from-the-workers.md). Two jobs must not write one table at the same time.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mockraft.spark_replay.storage.listing import exists, find_files
from mockraft.spark_replay.storage.locations import Location
from mockraft.spark_replay.storage.whole_files import create_folder, delete_folder, read_file, write_file

SUCCESS = "_SUCCESS"
_BEFORE = "before"
_COPIES_AT_ONCE = 16


class OutputError(OSError):
    """Raised if a table cannot be published, or was never published as a whole."""


class Staging(NamedTuple):
    """The folder of a table, and the hidden one next to it for parts of running tasks."""

    out: Location
    parts: Location

    @classmethod
    def begin(cls, out: Location) -> Staging:
        """Create the hidden folder, without what a killed job left there. Raises OSError.

        A table that the killed job had just moved away comes back.
        """
        out = out if out.is_remote else out._replace(path=str(Path(out.path).absolute()))
        parts = out.parent / f".{out.name}.being-written"
        if not out.is_object_store and exists(parts / _BEFORE) and not exists(out):
            _move(parts / _BEFORE, out)
        delete_folder(parts)
        create_folder(parts)
        return cls(out, parts)

    def end(self) -> None:
        """Delete the hidden folder."""
        delete_folder(self.parts)

    def publish(self, names: Sequence[str]) -> None:
        """Make these parts the table, in place of the earlier one. Raises OutputError if one cannot be seen."""
        if self.out.is_object_store:
            self._copy(names)
        else:
            self._rename(names)

    def _rename(self, names: Sequence[str]) -> None:
        table, before = self.parts / "table", self.parts / _BEFORE
        create_folder(table)
        for number, name in enumerate(names):
            try:
                _move(self.parts / name, table / f"part-{number:05}.parquet")
            except FileNotFoundError:
                problem = f"{self.out}: the driver cannot see a part written by a worker"
                raise OutputError(f"{problem}; use a folder shared by driver and workers") from None
        write_file(table / SUCCESS, b"")
        if not exists(self.out):
            _move(table, self.out)
            return
        _move(self.out, before)
        try:
            _move(table, self.out)
        except OSError:
            _move(before, self.out)
            raise

    def _copy(self, names: Sequence[str]) -> None:
        run = uuid.uuid4().hex[:12]
        system = self.out.file_system()
        final = [f"part-{number:05}-{run}.parquet" for number in range(len(names))]

        def copy(name: str, to: str) -> None:
            system.copy_file((self.parts / name).arrow_path, (self.out / to).arrow_path)

        try:
            with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
                for _ in pool.map(copy, names, final):
                    pass
            write_file(self.out / SUCCESS, json.dumps({"files": final}).encode())
        except OSError as error:
            for name in final:
                with suppress(OSError):
                    system.delete_file((self.out / name).arrow_path)
            raise OutputError(f"{self.out} cannot be written: {str(error).splitlines()[0]}") from None
        kept = {str(self.out / name) for name in (*final, SUCCESS)}
        for file in list(find_files(self.out, lambda name: True)):
            if file.path not in kept:
                system.delete_file(Location.parse(file.path).arrow_path)


def table_files(folder: Location) -> list[Location]:
    """Return the Parquet files of a table, sorted.

    Raises FileNotFoundError if there are none, OutputError for a folder of an object store without `_SUCCESS`: the job
    that wrote it did not end.
    """
    listed = {file.path for file in find_files(folder, lambda name: name.endswith(".parquet"))}
    if not listed:
        raise FileNotFoundError(f"{folder}: no Parquet files")
    if folder.is_object_store:
        try:
            content = read_file(folder / SUCCESS)
        except FileNotFoundError:
            raise OutputError(f"{folder} has no {SUCCESS}: the job that wrote it did not end; write it again") from None
        listed = {str(folder / name) for name in json.loads(content)["files"]} if content else listed
    return [Location.parse(path) for path in sorted(listed)]


def _move(source: Location, target: Location) -> None:
    if not source.is_remote:
        Path(source.path).rename(target.path)
    else:
        source.file_system().move(source.arrow_path, target.arrow_path)
