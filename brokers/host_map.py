"""Which host had which broker id: `hosts.json` in a controller's data dir, for mockraft and for others' tools to edit.

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

from mockraft.brokers.identity import BROKER_ID_MAX, IdentityError, checked_host
from mockraft.brokers.log_dirs import durable_file

HOSTS_FILE = "hosts.json"
LOCK_FILE = "hosts.json.lock"
FILE_BYTES_MAX = 16 << 20
_LOCK_POLL_S = 0.05


class HostMapError(ValueError):
    """The file cannot be used; the text names it and says what to do. It is never written over."""


class HostMap:
    """Host to broker id, and with it everything else that the file says."""

    def __init__(self, entries: Mapping[str, dict[str, Any]] | None = None) -> None:
        self._entries = dict(entries or {})

    @classmethod
    def read(cls, data: bytes) -> HostMap:
        """What these bytes of a file say. ValueError when they are no host map."""
        tree = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_number)
        if not isinstance(tree, dict):
            raise ValueError("want an object with a member for each host")
        entries: dict[str, dict[str, Any]] = {}
        for name, entry in tree.items():
            try:
                host = checked_host(name)
            except IdentityError as error:
                raise ValueError(str(error)) from None
            if host in entries:
                raise ValueError(f"the host {host} is there twice")
            entries[host] = _checked(host, entry)
        return cls(entries)

    def write(self) -> bytes:
        """The file, one host a line."""
        lines = (f"  {json.dumps(host)}: {json.dumps(entry)}" for host, entry in self._entries.items())
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()

    @property
    def ids(self) -> dict[str, int]:
        """Every host's broker id, hosts as `checked_host` spells them."""
        return {host: entry["broker.id"] for host, entry in self._entries.items()}

    def entry(self, host: str) -> Mapping[str, Any]:
        """All that is kept of one host. KeyError."""
        return self._entries[host]

    def set(self, host: str, broker_id: int) -> bool:
        """The host has this id from now on; its other keys stay. Returns whether that is news."""
        entry = self._entries.setdefault(host, {"version": 0})
        news = entry.get("broker.id") != broker_id
        entry["broker.id"] = broker_id
        return news

    def remove(self, host: str) -> None:
        """Forget the host. KeyError."""
        del self._entries[host]


class HostFile:
    """The map of one data dir on disk. The directory must be there, so that a slip of the pen makes no second map."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / HOSTS_FILE

    def read(self) -> HostMap:
        """The map as it is now, empty before there is a file. HostMapError."""
        self._check_directory()
        try:
            return HostMap.read(durable_file.read(self.path, FILE_BYTES_MAX))
        except FileNotFoundError:
            return HostMap()
        except OSError as error:
            raise HostMapError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise HostMapError(
                f"{self.path} is no host map: {error}. It is left as it is: mend it, or move it away to begin anew."
            ) from None

    @contextlib.contextmanager
    def changing(self, timeout_s: float = 10) -> Iterator[HostMap]:
        """The map, which nobody else may change meanwhile; written on leaving without an error. HostMapError."""
        with self._locked(timeout_s):
            hosts = self.read()
            before = hosts.write()
            yield hosts
            after = hosts.write()
            if after == before:
                return
            try:
                durable_file.replace(self.path, after)
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
            raise HostMapError(f"{self.path.parent} is no directory: want the data dir of a controller")


def _flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _checked(host: str, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"{host}: want an object with version and broker.id")
    version, broker_id = entry.get("version"), entry.get("broker.id")
    if type(version) is not int or version < 0:
        raise ValueError(f"{host}: version {json.dumps(version)} is no number from 0 up")
    if type(broker_id) is not int or not 0 <= broker_id <= BROKER_ID_MAX:
        raise ValueError(f"{host}: broker.id {json.dumps(broker_id)} is no number from 0 to {BROKER_ID_MAX}")
    return entry


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")
