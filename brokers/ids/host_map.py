"""Broker ids by host: `hosts.json` in a controller's data dir, for mockraft and for others' tools to edit.

    {"broker-1.example": {"version": 0, "broker.id": 1001}, "broker-2.example": {"version": 0, "broker.id": 1002}}

The value of a host is what the proposal keeps at `/brokers/hosts/<host>`. A higher version is read by the keys that are
known here; what is not known is written back as it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mockraft.brokers.ids.identity import BROKER_ID_MAX, IdentityError, checked_host
from mockraft.files.given_files import read_file
from mockraft.files.private_files import replace_file
from mockraft.files.trees import json_tree

HOSTS_FILE = "hosts.json"
LOCK_FILE = "hosts.json.lock"
FILE_BYTES_MAX = 16 << 20
RESERVATION_MS = 600_000
"""The time for which an id that was missing is kept for the host that took it, until its broker registers."""
_RESERVED = "reserved.until.ms"
_LOCK_POLL_S = 0.05


class HostMapError(ValueError):
    """The file is unusable; the text names it and the remedy. It is never overwritten."""


class HostMap:
    """Host to broker id, with all other contents of the file."""

    def __init__(self, entries: Mapping[str, dict[str, Any]] | None = None) -> None:
        self._entries = dict(entries or {})

    @classmethod
    def read(cls, data: bytes) -> HostMap:
        """Parse the bytes of a file. Raises ValueError when they are no host map."""
        tree = json_tree(data)
        if not isinstance(tree, dict):
            raise ValueError("expected an object with a member for each host")
        entries: dict[str, dict[str, Any]] = {}
        for name, entry in tree.items():
            try:
                host = checked_host(name)
            except IdentityError as error:
                raise ValueError(str(error)) from None
            if host in entries:
                raise ValueError(f"duplicate host {host}")
            entries[host] = _checked(host, entry)
        return cls(entries)

    def write(self) -> bytes:
        """Return the file's text, one host a line."""
        lines = (f"  {json.dumps(host)}: {json.dumps(entry)}" for host, entry in self._entries.items())
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @property
    def ids(self) -> dict[str, int]:
        """Return every host's broker id, hosts in the spelling of `checked_host`."""
        return {host: entry["broker.id"] for host, entry in self._entries.items()}

    def entry(self, host: str) -> Mapping[str, Any]:
        """Return the whole entry of one host. Raises KeyError."""
        return self._entries[host]

    def set(self, host: str, broker_id: int, *, reserves: bool = False) -> None:
        """Assign this id to the host and keep its other keys; `reserves` keeps the id from other hosts for a time."""
        entry = self._entries.setdefault(host, {"version": 0})
        entry["broker.id"] = broker_id
        entry.pop(_RESERVED, None)
        if reserves:
            entry[_RESERVED] = int(time.time() * 1000) + RESERVATION_MS

    def reserved(self, host: str) -> frozenset[int]:
        """Return the ids that are reserved for other hosts now."""
        now_ms = time.time() * 1000
        return frozenset(
            entry["broker.id"]
            for other, entry in self._entries.items()
            if other != host and entry.get(_RESERVED, 0) > now_ms
        )

    def remove(self, host: str) -> None:
        """Remove the host. Raises KeyError."""
        del self._entries[host]


class HostFile:
    """The map of one data dir on disk. The directory must exist, so that a misspelt path creates no second map."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / HOSTS_FILE

    def read(self) -> HostMap:
        """Return the current map, empty when there is no file. Raises HostMapError."""
        self._check_directory()
        try:
            return HostMap.read(read_file(self.path, FILE_BYTES_MAX))
        except FileNotFoundError:
            return HostMap()
        except OSError as error:
            raise HostMapError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise HostMapError(
                f"{self.path} is not a valid host map: {error}. It is unchanged: repair it, or move it away."
            ) from None

    @contextlib.contextmanager
    def changing(self, timeout_s: float = 10) -> Iterator[HostMap]:
        """Lock the map for a change; it is written when the block ends without an error. Raises HostMapError."""
        with self._locked(timeout_s):
            hosts = self.read()
            before = hosts.write()
            yield hosts
            after = hosts.write()
            if after == before:
                return
            try:
                replace_file(self.path, [after])
            except OSError as error:
                raise HostMapError(f"{self.path} cannot be written: {error.strerror or error}") from error

    @contextlib.contextmanager
    def _locked(self, timeout_s: float) -> Iterator[None]:
        self._check_directory()
        path = self.path.with_name(LOCK_FILE)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise HostMapError(f"{path} cannot be opened: {error.strerror}. The data dir must be writable.") from error
        try:
            give_up = time.monotonic() + timeout_s
            while not _flock(descriptor):
                if time.monotonic() >= give_up:
                    raise HostMapError(f"{path} is locked: another process changes the map")
                time.sleep(_LOCK_POLL_S)
            yield
        finally:
            os.close(descriptor)

    def _check_directory(self) -> None:
        if not self.path.parent.is_dir():
            raise HostMapError(f"{self.path.parent} is not a directory: expected the data dir of a controller")


def _flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _checked(host: str, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"{host}: expected an object with version and broker.id")
    version, broker_id = entry.get("version"), entry.get("broker.id")
    if type(version) is not int or version < 0:
        raise ValueError(f"{host}: version {json.dumps(version)} is not an integer from 0 up")
    if type(entry.get(_RESERVED, 0)) is not int:
        raise ValueError(f"{host}: {_RESERVED} {json.dumps(entry[_RESERVED])} is not an integer")
    if type(broker_id) is not int or not 0 <= broker_id <= BROKER_ID_MAX:
        raise ValueError(f"{host}: broker.id {json.dumps(broker_id)} is not an integer from 0 to {BROKER_ID_MAX}")
    return entry
