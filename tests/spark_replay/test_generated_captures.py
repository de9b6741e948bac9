"""Generated benchmark captures have exactly the declared frames."""

import sys
from pathlib import Path

import pytest
from mockraft.spark_replay.schemas import FRAMES
from mockraft.wire import messages
from mockraft.wire.connection import parse_request, read_response

from .frame_rows import rows_of, table_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("connections", [1, 7, 400])
def test_generated_capture_has_declared_frames_and_decodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: int
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import capture_generator

    path = tmp_path / "generated.pcap"
    made = capture_generator.generate(path, 4000, connections)
    table = table_of(path)
    assert made.packets >= 4000
    assert made.file_bytes == path.stat().st_size
    assert len(table) == made.frames
    assert rows_of(table, "pair_status") == {("paired",): made.frames}
    assert len(set(table["conn_id"].to_pylist())) == connections
    for row in table.slice(0, 300).to_pylist():
        assert set(row) == set(FRAMES.names)
        frame, version = row["frame"], row["api_version"]
        if row["is_response"]:
            body = read_response(frame, row["api_key"], version).write(version)
        else:
            request = parse_request(frame)
            body = messages.request(request.api_key).read(frame[request.body_offset :], version).write(version)
        assert frame.endswith(body)


def test_the_same_arguments_give_the_same_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import capture_generator

    files = [tmp_path / name for name in ("one", "other", "third")]
    for path, seed in zip(files, (1, 1, 2), strict=True):
        capture_generator.generate(path, 500, 5, seed)
    one, other, third = (path.read_bytes() for path in files)
    assert one == other
    assert one != third
