"""Captured Kafka traffic: from capture files to exchanges, tables and replays. Never imports the server."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockraft.spark_replay.frames import read_frames

__all__ = ["read_frames"]


def __getattr__(name: str) -> Any:
    """Import what is asked for on first use: numpy and pyarrow are not needed for a replay."""
    if name == "read_frames":
        from mockraft.spark_replay.frames import read_frames

        return read_frames
    raise AttributeError(name)
