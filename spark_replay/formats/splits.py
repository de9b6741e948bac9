"""Parts of a capture file that can be read apart from each other."""

from __future__ import annotations

from typing import NamedTuple

from mockraft.spark_replay.formats.file_headers import Interface, Order


class Split(NamedTuple):
    """The packets of a file whose records start at or behind `start` and before `end` (None: the file's end).

    `first_packet_no` is 0 where it is not known. For pcapng `order` and `interfaces` are those of the section that
    `start` lies in.
    """

    path: str
    start: int = 0
    end: int | None = None
    first_packet_no: int = 1
    order: Order = "<"
    interfaces: tuple[Interface, ...] = ()
