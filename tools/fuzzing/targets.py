"""Readers of foreign bytes, as functions that accept any bytes and raise only for a mistake of ours.

A target passes its input to a reader, expects the documented errors and checks what else must hold. `make fuzz` gives
it inputs that Atheris finds by coverage; `test_corpus.py` gives it the committed ones.
"""

from __future__ import annotations

import json
import random
import struct
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from crc32c import crc32c
from mockraft.brokers.log_dirs import record_times
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.log_dirs.produced_batches import LogConfig, check_produced, read_produced
from mockraft.files.trees import GivenFileError
from mockraft.kafka_api.effects import Close
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.controller.log.snapshot import Snapshot, SnapshotId
from mockraft.server.controller.log.state_file import read_state
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.spark_replay.decoding import decode_batches
from mockraft.spark_replay.decoding.exchange_table import pair_exchanges_table
from mockraft.spark_replay.formats import CaptureError
from mockraft.spark_replay.frames import read_frames
from mockraft.wire import messages, metadata_log_frame, record_batch, records
from mockraft.wire.connection import FrameReader, parse_request
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json, to_json

Target = Callable[[bytes], None]

START_MS = 1_700_000_000_000
CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"
FRAME_BYTES_MAX = 1 << 20
BATCH_HEADER_BYTES = 61
CRC_AT = 17


@cache
def folder() -> Path:
    """Return a folder for the files of this process, in memory where there is such a file system."""
    memory = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
    FOLDERS.append(made)
    return Path(made.name)


FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Kept until the process ends, which deletes them."""


def file_with(data: bytes, name: str) -> Path:
    """Return a file with these bytes."""
    path = folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def with_valid_crcs(data: bytes) -> bytes:
    """Return record batches with correct checksums: a changed byte must reach what is behind the checksum."""
    mended = bytearray(data)
    at = 0
    while len(data) - at >= BATCH_HEADER_BYTES:
        (length,) = struct.unpack_from(">i", data, at + 8)
        end = at + 12 + length
        if not at + BATCH_HEADER_BYTES <= end <= len(data):
            break
        struct.pack_into(">I", mended, at + CRC_AT, crc32c(data[at + CRC_AT + 4 : end]))
        at = end
    return bytes(mended)


def codec(data: bytes) -> None:
    """Any message or record: kind, key and version in a byte each, then the body."""
    if len(data) < 3:
        return
    kind, key, version = data[:3]
    try:
        lookup: Any = (messages.request, messages.response, records.by_type)[kind % 3]
        message: Any = lookup(key).read(data[3:], version)
    except WireError:
        return
    written = message.write(version)
    assert type(message).read(written, version).write(version) == written
    tree = json.loads(json.dumps(to_json(message, version)))
    assert from_json(type(message), tree, version).write(version) == written


def frames(data: bytes) -> None:
    """A stream of frames, in one piece and in pieces of the size of the first byte, and the requests in them."""
    if not data:
        return
    size, stream = data[0] % 16 + 1, data[1:]
    found: list[list[bytes]] = []
    for pieces in ([stream], [stream[at : at + size] for at in range(0, len(stream), size)]):
        reader = FrameReader(FRAME_BYTES_MAX)
        found.append([])
        with suppress(WireError):
            for piece in pieces:
                found[-1] += reader.receive_data(piece)
        assert reader.partial_bytes <= len(stream)
    assert found[0] == found[1]
    for frame in found[0]:
        with suppress(WireError):
            parsed = parse_request(frame)
            messages.request(parsed.api_key).read(frame[parsed.body_offset :], parsed.api_version)


def controller(data: bytes) -> None:
    """A stream of frames for a whole controller: it sends, waits or closes, and nothing fails."""
    config = ControllerConfig(cluster_id=CLUSTER_ID, frame_bytes_max=FRAME_BYTES_MAX)
    rng = random.Random(1)
    node = Node(Controller(config, Raft.open(config, START_MS, rng), rng, START_MS), APIS)
    node.connected(1, "127.0.0.1:1", START_MS)
    effects = node.step(1, data, START_MS)
    node.tick(START_MS + 10_000)
    if not any(isinstance(effect, Close) for effect in effects):
        node.disconnected(1, "the test ends", START_MS + 10_000)
    assert not node.journal.failures, node.journal.entries


def log(data: bytes) -> None:
    """The first segment of a metadata log: recovered, or refused with a reason, and recovered again alike."""
    data_dir = folder() / "data"
    file_with(f"cluster.id={CLUSTER_ID}\nnode.id=3000\nversion=1\n".encode(), "data/meta.properties")
    for old in data_dir.glob("__cluster_metadata-0/*"):
        old.unlink()
    file_with(with_valid_crcs(data), "data/__cluster_metadata-0/00000000000000000000.log")
    config = ControllerConfig(data_dir=data_dir, cluster_id=CLUSTER_ID)
    ends = []
    for _ in range(2):
        rng = random.Random(1)
        with suppress(DataDirError):
            raft = Raft.open(config, START_MS, rng)
            with closing(raft.log):
                Controller(config, raft, rng, START_MS)
            ends.append(raft.log.end_offset)
    assert not ends or (ends[0] <= ends[-1] and len(ends) == 2)


def snapshot(data: bytes) -> None:
    """A snapshot: records or a WireError, and batches alike; as a state file a state or a ValueError."""
    whole = with_valid_crcs(data)
    with suppress(ValueError):
        read_state(file_with(whole, "state"))
    with suppress(WireError):
        for at in Snapshot(SnapshotId(1, 1), whole).records():
            assert metadata_log_frame.decode(metadata_log_frame.encode(*at)).version == at.version
    with suppress(WireError):
        for batch in record_batch.read_batches(whole):
            assert batch.last_offset - batch.base_offset + 1 == len(batch.records)


def capture(data: bytes) -> None:
    """A capture file: frames, messages and exchanges or a CaptureError; with `quarantine`, no error at all."""
    path = file_with(data, "capture")
    for on_error in ("fail", "quarantine"):
        try:
            batches = list(read_frames(path, (9093,), on_error=on_error, frame_bytes_max=FRAME_BYTES_MAX))
        except CaptureError:
            continue
        decoded = sum(each.num_rows for each in decode_batches(batches))
        assert decoded == sum(each.num_rows for each in batches)
        for _ in pair_exchanges_table(batches):
            pass


def stubs(data: bytes) -> None:
    """A file of stubs, YAML if its first byte is odd: stubs that survive JSON, or a GivenFileError."""
    path = file_with(data[1:], "stubs.yaml" if data[:1] and data[0] & 1 else "stubs.json")
    try:
        found = read_stub_file(path)
    except GivenFileError:
        return
    for stub in found.stubs:
        assert type(stub).from_json(stub.to_json()).to_json() == stub.to_json()


def produced(data: bytes) -> None:
    """Record batches of a producer: checked, or refused with a LogError, and their times found."""
    batches = with_valid_crcs(data)
    with suppress(LogError):
        for header in read_produced(batches):
            check_produced(batches, header, LogConfig(), START_MS)
            for place in record_times.times(batches[header.position : header.end], header, 0):
                assert struct.pack(">qq", *place)


TARGETS: dict[str, Target] = {
    each.__name__: each for each in (capture, codec, controller, frames, log, produced, snapshot, stubs)
}
