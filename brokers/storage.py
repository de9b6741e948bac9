"""The component that opens a broker's logs at the start, writes their checkpoints and closes them at the end."""

from __future__ import annotations

import functools
from dataclasses import replace

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.core import Component, Core
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.lifecycle import End
from mockraft.brokers.log_dirs.log_loading import LogDir
from mockraft.brokers.log_dirs.logs import LoadedLogs, Logs
from mockraft.brokers.partitions.settings import whole_number

HIGH_WATERMARKS = "replica.high.watermark.checkpoint.interval.ms"
RECOVERY_POINTS = "log.flush.offset.checkpoint.interval.ms"
RETENTION = "log.retention.check.interval.ms"
_INTERVALS_MS = {HIGH_WATERMARKS: 5_000, RECOVERY_POINTS: 60_000, RETENTION: 300_000}

_CLEAN = frozenset({End.GRANTED, End.NOT_RUNNING, End.IMPATIENT, End.LOG_DIR_NOT_REPORTED, End.NOT_REGISTERED})
"""The ends at which Kafka's broker closes its logs; at all others its process is gone at once."""


def logs_of(config: BrokerConfig) -> Logs:
    """Return the logs of a broker on its config's disks, each of which can be made to fail; nothing is read."""
    return Logs(LogDir(FailingDisk(config.open_disk(path)), directory_id) for path, directory_id in config.log_dirs)


class Storage(Component):
    """Locks and loads `Core.logs`; `found` is the result, None before the start.

    A directory that another broker has locked makes the start raise BlockingIOError; one that cannot be read goes
    offline. The constructor raises ValueError for an interval in the config that is no number.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._armed = False
        properties = core.config.properties
        configured = {name: whole_number(name, properties[name]) for name in _INTERVALS_MS if name in properties}
        self._intervals_ms = {**_INTERVALS_MS, **configured} if configured else _INTERVALS_MS
        self.found: LoadedLogs | None = None

    def start(self) -> None:
        """Lock the directories and open their logs."""
        core = self._core
        core.logs.lock()
        self.found = core.logs.load()
        # Kafka reads it only when every directory of log.dirs is available.
        epoch = -1 if core.config.offline_log_dirs else core.logs.previous_broker_epoch
        if core.config.previous_broker_epoch == -1 and epoch != -1:
            core.config = replace(core.config, previous_broker_epoch=epoch)

    def metadata_advanced(self) -> None:
        """Start the periodic checkpoints once there is a log."""
        if not self._armed and self._core.logs.held():
            self._armed = True
            for name in _INTERVALS_MS:
                self._arm(name)

    def close(self) -> None:
        """Close the logs cleanly after an orderly end; a killed broker leaves them as they are."""
        core = self._core
        if self.found is not None and core.end in _CLEAN:
            core.logs.shut_down(core.life.broker_epoch)
        else:
            core.logs.close()

    def _arm(self, name: str) -> None:
        self._core.kernel.after(name, max(1, self._intervals_ms[name]), functools.partial(self._due, name))

    def _due(self, name: str) -> None:
        if name == HIGH_WATERMARKS:
            self._core.logs.checkpoint_high_watermarks()
        elif name == RECOVERY_POINTS:
            self._core.logs.checkpoint()
        else:
            self._core.logs.retain(int(self._core.kernel.now_ms))
        self._arm(name)
