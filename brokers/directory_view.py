"""The log directories of a broker as its user sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mockraft.wire.uuids import text_of

if TYPE_CHECKING:
    from mockraft.brokers.node import BrokerNode


class LogDirView(NamedTuple):
    """One log directory as it is now.

    `directory_id` is the text of its uuid, empty where it could not be read; `offline` is the reason, None while it
    is online. `replicas` are those in it, as `topic-partition`, `future` those that are being moved there.
    """

    path: str
    directory_id: str
    offline: str | None
    is_cordoned: bool
    replicas: tuple[str, ...]
    future: tuple[str, ...]


class DirectoryViews:
    """Read access to a broker's log directories."""

    node: BrokerNode

    @property
    def log_dirs(self) -> dict[str, LogDirView]:
        """Every configured log directory by path, those that are offline too."""
        directories = self.node.directories
        directories.make_logs()
        views = {
            path: LogDirView(
                path,
                text_of(directory_id),
                directories.offline.get(directory_id),
                directory_id in directories.cordoned,
                self._replicas(directory_id, future=False),
                self._replicas(directory_id, future=True),
            )
            for path, directory_id in self.node.config.log_dirs
        }
        return views | {
            path: LogDirView(path, "", reason, False, (), ())
            for path, reason in self.node.config.offline_log_dirs.items()
        }

    def _replicas(self, directory_id: bytes, *, future: bool) -> tuple[str, ...]:
        held = self.node.logs.held(future=future)
        return tuple(
            sorted(
                f"{each.topic_partition[0]}-{each.topic_partition[1]}"
                for each in held
                if each.log_dir.directory_id == directory_id
            )
        )
