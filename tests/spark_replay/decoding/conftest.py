"""Tables of frames: made by hand, and those of the real captures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mockraft.codegen.every_release import every_release
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import judging
from mockraft.spark_replay.decoding.frame_shapes import ShapeTable
from mockraft.spark_replay.schemas import FRAMES
from mockraft.wire.connection import write_request, write_response
from mockraft.wire.message import Message

CAPTURES = Path(__file__).parents[2] / "captures"

Row = tuple[bytes, int, int, bool]
AnyRow = Row | tuple[bytes | None, int | None, int | None, bool]


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> ShapeTable:
    """Start every test with an empty shape table."""
    fresh = ShapeTable()
    monkeypatch.setattr(judging, "KNOWN_SHAPES", fresh)
    return fresh


def frame_table(rows: Sequence[AnyRow]) -> pa.RecordBatch:
    """A batch of FRAMES from (frame, api key, api version, is it a response)."""
    made = []
    for number, (data, api_key, api_version, is_response) in enumerate(rows):
        api = {"api_key": api_key, "api_version": api_version, "is_response": is_response}
        frame = {"truncated": data is None, "size": len(data or b""), "frame": data}
        made.append({"conn_id": 1, "incarnation": 1, "frame_no": number, **api, **frame})
    return pa.RecordBatch.from_pylist(made, schema=FRAMES)


def request_frame(message: Message, version: int, client_id: str | None = "a") -> Row:
    """A request as it is framed, less its four bytes of length."""
    return write_request(message, version, 1, client_id)[4:], message.api_key, version, False


def response_frame(message: Message, version: int) -> Row:
    """A response as it is framed, less its four bytes of length."""
    before = every_release().response_header_version(message.api_key, version)
    return write_response(message.write(version), 1, before)[4:], message.api_key, version, True


@pytest.fixture(scope="session")
def captured() -> dict[str, list[pa.RecordBatch]]:
    """The frames of the real captures, by the capture's name."""
    return {path.stem: list(read_frames(path)) for path in sorted(CAPTURES.glob("*.pcap"))}


@pytest.fixture(scope="session")
def captured_rows(captured: dict[str, list[pa.RecordBatch]]) -> list[Row]:
    """Every frame of the real captures as a row to make tables of."""
    names = ("frame", "api_key", "api_version", "is_response")
    rows: list[Any] = []
    for batch in (batch for batches in captured.values() for batch in batches):
        rows += zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    return rows
