"""The exchanges of capture files as Python objects, for captures that fit into memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from os import PathLike

import pyarrow.compute as pc
from mockraft.spark_replay.decoding.exchange_table import pair_exchanges_table
from mockraft.spark_replay.frames import read_frames
from mockraft.spark_replay.regression.captured import Captured, of_batches


def read_exchanges(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    ports: Collection[int] = (),
    key_log: str | PathLike[str] | None = None,
) -> list[Captured]:
    """Return the Kafka exchanges of capture files, numbered in the order of their requests.

    A request without a captured response is included; frames cut short by a snaplen are not. `ports` are the servers'
    ports, and `key_log` has secrets of TLS connections, as for `read_frames`. Raises `formats.CaptureError` for a file
    that is not a capture or is damaged, and KeyLogError for a key log without secrets.
    """
    batches = read_frames(paths, ports, key_log=key_log)
    frames = (batch.filter(pc.invert(batch["truncated"])) for batch in batches)
    found = sorted(of_batches(pair_exchanges_table(frames)), key=_place)
    return [each._replace(number=number) for number, each in enumerate(found, start=1)]


def _place(each: Captured) -> tuple[int, int, int, int]:
    return each.request_ts_ns, each.conn_id, each.incarnation, each.request_frame_no or 0
