"""Frames to messages: every body read, written again and compared with its bytes."""

from mockraft.spark_replay.decoding.message_table import decode_batches, decode_frames

__all__ = ["decode_batches", "decode_frames"]
