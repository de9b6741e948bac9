"""Parse and check the options of the sources `kafka_pcap` and `kafka_frames`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mockraft.codegen.every_release import every_release
from mockraft.spark_replay.formats.file_events import OnError
from mockraft.spark_replay.formats.splits import SplitIndex
from mockraft.spark_replay.key_logs import KeyLog, KeyLogError, read_key_log
from mockraft.spark_replay.storage import LocationError
from mockraft.spark_replay.storage.locations import refuse_credentials
from mockraft.wire.names import similar_names

LEVELS = ("runs", "packets", "frames", "file_events")
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
CHUNK_BYTES_MAX = 512 << 20
"""Limit of `chunkBytes`: a run is a row, and all rows of a batch must stay below 2 GiB."""
_PORT_MAX = 65_535


class OptionError(ValueError):
    """Raised for an unknown option or an invalid value: names the option, the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a reader; sizes are bytes, times nanoseconds since 1970 (`time_to_ns` is exclusive)."""

    level: str = "runs"
    ports: tuple[int, ...] = ()
    clients: tuple[str, ...] = ()
    api_keys: tuple[int, ...] = ()
    time_from_ns: int | None = None
    time_to_ns: int | None = None
    split_bytes: int = 64 << 20
    chunk_bytes: int = 8 << 20
    split_index: SplitIndex = "auto"
    linktype: int | None = None
    max_frame_bytes: int = 100 << 20
    include_bytes: bool = True
    on_error: OnError = "fail"
    push_filters: bool = False
    max_files_per_trigger: int | None = None
    key_log: KeyLog | None = None
    quiet_seconds: int = 5

    @classmethod
    def read(cls, given: Mapping[str, str], *, levels: tuple[str, ...] = LEVELS) -> SourceOptions:
        """Parse options from Spark or a keyword dict (camelCase, case-insensitive). Raises OptionError."""
        try:
            refuse_credentials(given, "option")
        except LocationError as error:
            raise OptionError(str(error)) from None
        known = {name.lower(): name for name in OPTIONS}
        values: dict[str, Any] = {"level": levels[0]}
        for key, value in given.items():
            if key.lower() in ("path", "paths"):
                continue
            name = known.get(key.lower())
            if name is None:
                near = similar_names(key, OPTIONS)
                hint = f" (did you mean {' or '.join(near)}?)" if near else ""
                raise OptionError(f"unknown option {key}={value}{hint}; there are: {', '.join(OPTIONS)}")
            allowed, parse = OPTIONS[name]
            try:
                values[_field(name)] = parse(str(value).strip())
            except (ValueError, OverflowError) as error:
                raise OptionError(f"option {name}: {value!r} is not {allowed}{_detail(error)}") from None
        if values["level"] not in levels:
            raise OptionError(f"option level: {values['level']!r} is not {' or '.join(levels)}")
        options = cls(**values)
        options._check()
        return options

    def _check(self) -> None:
        if self.level == "runs" and not self.include_bytes:
            raise OptionError(
                "option includeBytes: 'false' is not possible at level runs: frames are made of a run's bytes"
            )
        if self.api_keys and self.level != "frames":
            raise OptionError(f"option apiKeys: not possible at level {self.level}: only frames have an API")
        if self.key_log is not None and self.level != "frames":
            raise OptionError(f"option keyLog: not possible at level {self.level}: only frames are decrypted")
        if self.chunk_bytes > CHUNK_BYTES_MAX:
            raise OptionError(f"option chunkBytes: {self.chunk_bytes} is more than {CHUNK_BYTES_MAX} (512m)")
        if None not in (self.time_from_ns, self.time_to_ns) and self.time_from_ns >= self.time_to_ns:  # type: ignore[operator]
            raise OptionError("option timeTo: must be after timeFrom")


def _field(name: str) -> str:
    field = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return f"{field}_ns" if field in ("time_from", "time_to") else field


def _detail(error: Exception) -> str:
    text = str(error)
    return f": {text[1:]}" if text.startswith("!") else ""


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
    if match is None or match[2] not in _UNITS or not int(match[1]):
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2]]


def _ports(text: str) -> tuple[int, ...]:
    ports = tuple(int(each) for each in text.split(",") if each.strip())
    if not all(0 < port <= _PORT_MAX for port in ports):
        raise ValueError(text)
    return ports


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _apis(text: str) -> tuple[int, ...]:
    known = {name.lower(): key for key, name in every_release().api_names.items()}
    keys = []
    for each in _names(text):
        key = int(each) if each.isdecimal() else known.get(each.lower())
        if key is None:
            raise ValueError(f"!Kafka has no API {each}")
        keys.append(key)
    return tuple(keys)


def _time(text: str) -> int:
    if text.isdecimal():
        return int(text)
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return parse


def _truth(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _key_log(path: str) -> KeyLog:
    try:
        return read_key_log(path)
    except KeyLogError as error:
        raise ValueError(f"!{error}") from None


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if int(text) < least:
            raise ValueError(text)
        return int(text)

    return parse


OPTIONS: dict[str, tuple[str, Callable[[str], object]]] = {
    "level": (" or ".join(LEVELS), _one_of(*LEVELS)),
    "ports": ("comma-separated ports (9092,9093)", _ports),
    "clients": ("comma-separated client addresses", _names),
    "apiKeys": ("comma-separated API keys or names (63,Fetch)", _apis),
    "timeFrom": ("a time (2026-11-20T10:00:00Z, or nanoseconds since 1970)", _time),
    "timeTo": ("a time (2026-11-20T10:00:00Z, or nanoseconds since 1970)", _time),
    "splitBytes": ("a size (64m)", _size),
    "chunkBytes": ("a size (8m)", _size),
    "splitIndex": ("auto, exact or off", _one_of("auto", "exact", "off")),
    "linktype": ("a link type's number (1 Ethernet, 101 raw, 113 SLL, …)", _at_least(0)),
    "maxFrameBytes": ("a size (100m)", _size),
    "includeBytes": ("true or false", _truth),
    "onError": ("fail, quarantine or skip", _one_of("fail", "quarantine", "skip")),
    "pushFilters": ("true or false", _truth),
    "maxFilesPerTrigger": ("a number of files, 1 or more", _at_least(1)),
    "keyLog": ("a key log (SSLKEYLOGFILE)", _key_log),
    "quietSeconds": ("a number of seconds, 0 or more", _at_least(0)),
}
"""Each option: its allowed values as text, and its parser."""
