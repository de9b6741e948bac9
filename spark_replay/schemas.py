"""The columns of every table made from captures, as Arrow schemas; docs/captured-tables.md describes them.

Times are nanoseconds since 1970, sizes bytes. A connection is identified by `conn_id` (the same number in every file,
split and run) and `incarnation`, which counts the connections between the same two endpoints from 1.
"""

from __future__ import annotations

import pyarrow as pa

_CONNECTION = [
    ("conn_id", pa.int64()),
    ("client", pa.string()),
    ("client_port", pa.int32()),
    ("server", pa.string()),
    ("server_port", pa.int32()),
]

_INCARNATION = [_CONNECTION[0], ("incarnation", pa.int32()), *_CONNECTION[1:]]

PACKETS = pa.schema(
    [
        ("file", pa.string()),
        ("packet_no", pa.int64()),
        ("file_offset", pa.int64()),
        ("ts_ns", pa.int64()),
        ("linktype", pa.int32()),
        ("vlan", pa.int32()),
        ("src", pa.string()),
        ("dst", pa.string()),
        ("sport", pa.int32()),
        ("dport", pa.int32()),
        ("seq", pa.int64()),
        ("ack", pa.int64()),
        ("flags", pa.int16()),
        ("payload_len", pa.int32()),
        ("captured_len", pa.int32()),
        ("payload", pa.binary()),
    ]
)
"""A row is a TCP segment; `captured_len` bytes of its payload were captured."""

RUNS = pa.schema(
    [
        *_CONNECTION,
        ("dir", pa.int8()),
        ("incarnation_hint", pa.int32()),
        ("known_by", pa.int8()),
        ("seq", pa.int64()),
        ("first_ts_ns", pa.int64()),
        ("file", pa.string()),
        ("file_offset", pa.int64()),
        ("data", pa.binary()),
        ("seg_len", pa.list_(pa.int32())),
        ("seg_ts_ns", pa.list_(pa.int64())),
        ("seg_off", pa.list_(pa.int64())),
        ("syn", pa.bool_()),
        ("fin", pa.bool_()),
        ("rst", pa.bool_()),
        ("holes", pa.list_(pa.struct([("at", pa.int32()), ("len", pa.int32())]))),
        ("dup_bytes", pa.int64()),
        ("conflict_bytes", pa.int64()),
    ]
)
"""A row is a contiguous run of bytes of one direction (0 client to server, 1 back) inside one chunk of a file.

SYN, FIN and RST are rows of their own with empty `data`. `first_ts_ns` is the time of the first packet of the row's
chunk (sorting by it, `file` and `file_offset` keeps chunks in order); `known_by` is how the direction was determined (1
ports, 2 a SYN, 0 guessed); `seg_len`, `seg_ts_ns` and `seg_off` (the packet's offset in its file) have an entry for
each segment, `holes` one for each place in `data` where a snaplen cut bytes off; `dup_bytes` are retransmitted bytes
that were left out, `conflict_bytes` those of them that differed.
"""

FRAMES = pa.schema(
    [
        *_INCARNATION,
        ("frame_no", pa.int64()),
        ("is_response", pa.bool_()),
        ("api_key", pa.int16()),
        ("api_version", pa.int16()),
        ("header_version", pa.int8()),
        ("correlation_id", pa.int32()),
        ("client_id", pa.string()),
        ("ts_first_ns", pa.int64()),
        ("ts_last_ns", pa.int64()),
        ("packet_first", pa.int64()),
        ("packet_last", pa.int64()),
        ("segments", pa.int32()),
        ("size", pa.int32()),
        ("truncated", pa.bool_()),
        ("after_gap", pa.bool_()),
        ("pair_status", pa.string()),
        ("request_frame_no", pa.int64()),
        ("latency_ns", pa.int64()),
        ("frame", pa.binary()),
    ]
)
"""A row is a request or response, `frame` without its four-byte length (null if the capture cut it short).

`pair_status` is paired, no_response, no_request, mismatch or acks0; a response has its request's API (-1 without one)
and the latency from the request's last byte to its own last.
"""

CONN_EVENTS = pa.schema(
    [
        *_INCARNATION,
        ("dir", pa.int8()),
        ("ts_ns", pa.int64()),
        ("kind", pa.string()),
        ("bytes", pa.int64()),
        ("detail", pa.string()),
    ]
)
"""Events of a connection: syn fin rst gap dup conflict midstream desync tls sasl, hole, oversized."""

FILE_EVENTS = pa.schema(
    [
        ("file", pa.string()),
        ("file_offset", pa.int64()),
        ("kind", pa.string()),
        ("count", pa.int64()),
        ("detail", pa.string()),
    ]
)
"""File parts that are in no table: fragments, not_tcp, unknown_link, cut_header, truncated, corrupt, quarantined."""

MESSAGES = pa.schema(
    [
        *[FRAMES.field(name) for name in FRAMES.names if name != "frame"],
        ("api_name", pa.string()),
        ("decode_status", pa.string()),
        ("error_offset", pa.int32()),
        ("error", pa.string()),
        ("roundtrip", pa.bool_()),
        ("first_diff_offset", pa.int32()),
        ("unknown_tags", pa.list_(pa.int64())),
        ("body", pa.string()),
    ]
)
"""A row is a decoded frame: `decode_status` is ok, unknown_api, unknown_version, error, opaque or truncated; `body` is
JSON as Kafka's converters write it (on Spark optionally a VARIANT).
"""

EXCHANGES = pa.schema(
    [
        *_INCARNATION,
        ("api_key", pa.int16()),
        ("api_version", pa.int16()),
        ("correlation_id", pa.int32()),
        ("client_id", pa.string()),
        ("request_frame_no", pa.int64()),
        ("response_frame_no", pa.int64()),
        ("request_ts_ns", pa.int64()),
        ("response_ts_ns", pa.int64()),
        ("latency_ns", pa.int64()),
        ("request", pa.binary()),
        ("response", pa.binary()),
    ]
)
"""A row is a request with its response, both as frames; times are those of the last bytes."""

REPLAY_RESULTS = pa.schema(
    [
        ("run_id", pa.string()),
        ("session", pa.string()),
        ("mode", pa.string()),
        ("number", pa.int64()),
        *[EXCHANGES.field(name) for name in EXCHANGES.names if name not in ("request", "response", "latency_ns")],
        ("sent_ns", pa.int64()),
        ("recv_ns", pa.int64()),
        ("captured_latency_ns", pa.int64()),
        ("latency_ns", pa.int64()),
        ("status", pa.string()),
        ("detail", pa.string()),
        ("raw_equal", pa.bool_()),
        ("equal", pa.bool_()),
        ("captured_response", pa.binary()),
        ("live_response", pa.binary()),
    ]
)
"""A row is a replayed exchange; `status` is ok, timeout, closed, error or left_out (reason in `detail`)."""

_OF_EXCHANGE = ("run_id", "session", "number", "conn_id", "incarnation", "request_frame_no", "api_key", "api_version")
DIFFS = pa.schema(
    [
        *(REPLAY_RESULTS.field(name) for name in _OF_EXCHANGE),
        ("path", pa.string()),
        ("kind", pa.string()),
        ("expected", pa.string()),
        ("actual", pa.string()),
        ("rule", pa.string()),
    ]
)
"""A row is a difference of a live response from the captured one: missing, extra, changed, order or volatile_ok."""
