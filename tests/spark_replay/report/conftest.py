"""Tables of a small capture and of a replay of it with one difference, written once."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.spark_replay import read_frames, schemas
from mockraft.spark_replay.decoding import decode_batches
from mockraft.wire.connection import write_response
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

from .rows import batch, diffs, results

CAPTURES = Path(__file__).parents[2] / "captures"
HOSTILE = "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames and messages of the first part of the real capture; one client has a name that would do harm."""
    folder = tmp_path_factory.mktemp("tables")
    capture = CAPTURES / "controller-4.3.1.pcap"
    everything = pa.Table.from_batches(read_frames(capture, [19093])).sort_by("ts_last_ns")
    frames = everything.slice(0, 400).combine_chunks().to_batches()[0]
    clients = [HOSTILE if client_id == "raft-client-2" else client_id for client_id in frames["client_id"].to_pylist()]
    frames = frames.set_column(frames.schema.get_field_index("client_id"), "client_id", pa.array(clients))
    write(folder, "frames", frames)
    write(folder, "messages", *decode_batches([frames]))
    ends = {"conn_id": 1, "incarnation": 1, "client": HOSTILE, "client_port": 1, "server": "b", "server_port": 2}
    gap = {"kind": "gap", "dir": 0, "ts_ns": frames["ts_last_ns"][200].as_py(), "bytes": 1460, "detail": HOSTILE}
    write(folder, "conn_events", batch(schemas.CONN_EVENTS, [gap], **ends))
    write(folder, "file_events", batch(schemas.FILE_EVENTS, [{"file": HOSTILE, "kind": "not_tcp", "count": 3}]))
    return folder


@pytest.fixture(scope="session")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A replay of three requests, of which one is answered otherwise."""
    folder = tmp_path_factory.mktemp("replayed")
    captured, live = (
        write_response(BrokerHeartbeatResponse(is_fenced=fenced).write(2), 7, 1)[4:] for fenced in (True, False)
    )
    different = {"number": 2, "equal": False, "raw_equal": False, "captured_response": captured, "live_response": live}
    write(folder, "replay_results", results({"number": 0}, {"number": 1}, {**different, "api_version": 2}))
    found = {"number": 2, "api_version": 2, "expected": HOSTILE, "actual": "false"}
    write(folder, "diffs", diffs(found, {"kind": "volatile_ok", "rule": "throttle"}))
    (folder / "rules.json").write_text('[{"rule": "throttle", "fired": 1}, {"rule": "<b>epochs</b>", "fired": 0}]')
    return folder


def write(folder: Path, name: str, *batches: pa.RecordBatch) -> None:
    (folder / name).mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_batches(batches), folder / name / "part-0.parquet")
