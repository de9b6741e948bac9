"""Frames to messages: every body read, written again and compared with its bytes. And frames to exchanges."""

from mockraft.spark_replay.decoding.exchange_table import pair_exchanges_table
from mockraft.spark_replay.decoding.field_columns import field_columns
from mockraft.spark_replay.decoding.message_table import decode_batches, decode_frames

__all__ = ["decode_batches", "decode_frames", "field_columns", "pair_exchanges_table"]
