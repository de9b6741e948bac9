"""Names of log directories (Kafka's `LocalLog.logDirName`, `parseTopicPartitionName`)."""

from __future__ import annotations

import random
import re
from typing import Literal, NamedTuple

Kind = Literal["", "future", "delete", "stray"]

NAME_LENGTH_MAX = 255

_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,10})")
_MARKED = re.compile(r"(?P<name>\S+-\d{1,10})\.(?P<unique>[^.\s]+)-(?P<kind>future|delete|stray)")


class LogName(NamedTuple):
    """The parts of a directory's name; `kind` is empty for the current log.

    The topic of one marked delete or stray may be truncated.
    """

    topic: str
    partition: int
    kind: Kind = ""


def live_name(topic: str, partition: int) -> str:
    """`topic-partition`."""
    return f"{topic}-{partition}"


def marked_name(topic: str, partition: int, kind: Kind, rng: random.Random) -> str:
    """Return `topic-partition.<32 hex digits>-future` and so on, cut to 255 bytes for delete and stray."""
    end = f"-{partition}.{rng.getrandbits(128):032x}-{kind}"
    return (topic if kind == "future" else topic[: NAME_LENGTH_MAX - len(end)]) + end


def parse(name: str) -> LogName | None:
    """Parse a log's name; None when it is none."""
    kind: Kind = ""
    if marked := _MARKED.fullmatch(name):
        name, kind = marked["name"], marked["kind"]  # type: ignore[assignment]
    found = _NAME.fullmatch(name)
    return None if found is None else LogName(found["topic"], int(found["partition"]), kind)
