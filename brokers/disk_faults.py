"""Disks that fail on purpose: what a test does to the directories of one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockraft.brokers.directories import Directories


class DiskFaults:
    """What `SimulatedBroker` offers for breaking its disks; a directory is its path or its uuid (bytes or text)."""

    directories: Directories

    def fail_log_dir(self, log_dir: str | bytes) -> None:
        """Break a directory: all I/O there fails, and the broker notices at once. LookupError names the known ones."""
        directory_id = self.directories.find(log_dir).directory_id
        self.directories.fail(directory_id, "it was broken on purpose")

    @property
    def queued_replica_to_dir_assignments(self) -> int:
        """Kafka's metric QueuedReplicaToDirAssignments: replicas whose directory the controller does not know yet."""
        return self.directories.assignments.queued
