"""kill -9 while a process appends as fast as it can: whatever it had acknowledged is there afterwards."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft.server.config import ControllerConfig
from mockraft.server.raft.raft import Raft
from mockraft.wire.records.topic_record import TopicRecord

APPENDER = """
import random, sys
from pathlib import Path
from mockraft.server.config import ControllerConfig
from mockraft.server.raft.raft import Raft
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.topic_record import TopicRecord

config = ControllerConfig(
    data_dir=Path(sys.argv[1]),
    metadata_log_segment_bytes=20_000,
    metadata_log_max_record_bytes_between_snapshots=60_000,
    metadata_max_retention_bytes=200_000,
)
log = Raft.open(config, 1000, random.Random(1)).log
image = [record for _, record in log.records()]
number = sum(isinstance(at.record, TopicRecord) for at in image)
while True:
    records = [RecordAt(TopicRecord(name=f"topic-{number + each}"), 0) for each in range(1 + number % 7)]
    image += records
    number += len(records)
    log.append(records, 1000)
    print(number, flush=True)
    if log.snapshot_due(1000):
        log.write_snapshot(image, 1000)
"""


@pytest.mark.parametrize("lines", [1, 400, 1500])
def test_acknowledged_records_survive_a_kill(tmp_path: Path, lines: int) -> None:
    acknowledged = 0
    for _ in range(3):
        command = [sys.executable, "-c", APPENDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as appender:
            assert appender.stdout is not None
            for _ in range(lines):
                acknowledged = int(appender.stdout.readline())
            appender.send_signal(signal.SIGKILL)
            for line in appender.stdout:
                acknowledged = int(line) if line.endswith("\n") else acknowledged
        log = Raft.open(ControllerConfig(data_dir=tmp_path), 2000, random.Random(1)).log
        names = [at.record.name for _, at in log.records() if isinstance(at.record, TopicRecord)]
        log.close()
        assert len(names) >= acknowledged
        assert names == [f"topic-{number}" for number in range(len(names))]
