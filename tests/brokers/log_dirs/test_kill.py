"""kill -9 while a log is written: acknowledged records are there at the next start, without gaps."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.log_dir import LogDir
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.wire import record_batch

WRITER = """
import sys
from mockraft.brokers.log_dirs.log_dir import LogDir
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.disks.real_disk import RealDisk
from mockraft.brokers.log_dirs.replica_log import LogConfig
from mockraft.wire import record_batch

logs = Logs([LogDir(RealDisk(sys.argv[1]), bytes(16))])
logs.lock()
logs.load()
log = logs.create((bytes(range(16)), 0), "t", bytes(16), config=LogConfig(segment_bytes=4000))
while True:
    value = b"%d" % log.end_offset
    _, end = log.append_as_leader(record_batch.encode([value] * 3, base_offset=0, leader_epoch=0, timestamp_ms=0), 1, 0)
    log.high_watermark = end
    if end % 60 == 0:
        logs.checkpoint_high_watermarks()
        logs.checkpoint(flush=end % 120 == 0)
    print(end, flush=True)
"""


@pytest.mark.parametrize("kill_after", [1, 70])
def test_acknowledged_records_survive_a_kill(tmp_path: Path, kill_after: int) -> None:
    acknowledged = 0
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _ in range(kill_after):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            acknowledged = int((writer.stdout.read().splitlines() or [str(acknowledged)])[-1])

    logs = Logs([LogDir(RealDisk(str(tmp_path)), bytes(16))])
    logs.lock()
    (held,) = logs.load().live
    assert held.log.end_offset >= acknowledged
    assert held.log.high_watermark <= held.log.end_offset
    read, offset = [], 0
    while data := held.log.read(offset, 1 << 20):
        for batch in record_batch.read_batches(data):
            assert batch.base_offset == offset
            offset = batch.last_offset + 1
            read += [int(value or b"") for _, value in batch.records]
    assert read == [number // 3 * 3 for number in range(held.log.end_offset)]
    logs.shut_down()
