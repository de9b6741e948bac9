"""Frames to messages and exchanges.

Every frame is read with the generated codec (`mockraft.wire`), written again and compared with its own bytes. The
result is one row of `schemas.MESSAGES` for each frame, whatever its bytes are: nothing is dropped and nothing raises.
`decode_status` and `roundtrip` report the result.

`verdicts` is the reference path, one frame at a time. Most frames of a capture differ from an earlier one in field
values only, so `shapes` proves the verdict for many frames at once with numpy: `layout` divides one decoded frame into
structure bytes (lengths, counts, null markers, tags) and field contents, and a frame with the same structure bytes has
the same verdict. `shape_json` renders the bodies of such frames from a template. Frames not covered by the proof take
the reference path, so both paths give identical rows; `decode_frames(by_shape=False)` uses the reference path alone.

`typed_table` decodes the frames of one API to typed columns instead of JSON, by shape as well (`typed_columns`).
`record_table` reads records in Produce, Fetch and FetchSnapshot (`snapshot_chunks` joins the pieces of the last),
`client_batches` those of one batch. `envelopes` opens forwarded messages. `exchange_table` joins requests with
responses.
"""

from mockraft.spark_replay.decoding.envelopes import Opener, decode_forwarded_batches
from mockraft.spark_replay.decoding.exchange_table import pair_exchanges_table
from mockraft.spark_replay.decoding.message_table import decode_batches, decode_frames
from mockraft.spark_replay.decoding.record_table import RECORD_BYTES_MAX, decode_record_batches
from mockraft.spark_replay.decoding.typed_table import decode_typed, decode_typed_batches, typed_schema

__all__ = [
    "RECORD_BYTES_MAX",
    "Opener",
    "decode_batches",
    "decode_forwarded_batches",
    "decode_frames",
    "decode_record_batches",
    "decode_typed",
    "decode_typed_batches",
    "pair_exchanges_table",
    "typed_schema",
]
