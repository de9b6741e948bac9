"""The place from which a future log goes on copying: where it still agrees with the current one."""

import pytest
from mockraft.brokers.disks.memory_disk import MemoryDisk
from mockraft.brokers.log_dirs.replica_log import ReplicaLog
from mockraft.brokers.moves.copying import _common_end as common_end

from ..log_dirs.conftest import batch


def log_of(name: str, *epochs: int, high_watermark: int = 0) -> ReplicaLog:
    """A log with one record of each of these epochs."""
    log = ReplicaLog(MemoryDisk(f"/{name}"), "t-0")
    for epoch in epochs:
        log.append_as_leader(batch("x"), epoch, 0)
    log.high_watermark = high_watermark
    return log


@pytest.mark.parametrize(
    ("current", "future", "expected"),
    [
        ((), (), 0),
        ((1, 1, 1), (), 0),
        ((1, 1, 1), (1, 1), 2),
        ((1,), (1, 1, 1), 1),
        ((1, 3), (1, 2, 2), 1),
        ((1, 1, 2, 4), (1, 3, 3, 3), 1),
        ((2, 2), (1, 1, 1), 0),
    ],
)
def test_logs_agree_up_to_the_end_of_the_last_common_epoch(
    current: tuple[int, ...], future: tuple[int, ...], expected: int
) -> None:
    assert common_end(log_of("current", *current), log_of("future", *future)) == expected
