"""The columns of every table made from captures, as Arrow schemas; docs/reference/captured-tables.md describes them.

Times are nanoseconds since 1970, sizes bytes. A connection is identified by `conn_id` (the same number in every file,
split and run) and `incarnation`, which counts the connections between the same two endpoints from 1.
"""

from __future__ import annotations

import pyarrow as pa

_ENDS = "client string, client_port int32, server string, server_port int32"
_INCARNATION = f"conn_id int64, incarnation int32, {_ENDS}"


def columns(*lines: str) -> list[pa.Field]:
    """Return the columns of lines like `seq int64, data binary`; types have Arrow's names."""
    pairs = [column.split() for line in lines for column in line.split(",")]
    return [pa.field(name, pa.type_for_alias(kind)) for name, kind in pairs]


PACKETS = pa.schema(
    columns(
        "file string, packet_no int64, file_offset int64, ts_ns int64",
        "linktype int32, vlan int32, src string, dst string, sport int32, dport int32",
        "seq int64, ack int64, flags int16, payload_len int32, captured_len int32, payload binary",
    )
)
"""A row is a TCP segment; `captured_len` bytes of its payload were captured."""

RUNS = pa.schema(
    [
        *columns(f"conn_id int64, {_ENDS}, dir int8, incarnation_hint int32, known_by int8, seq int64"),
        *columns("first_ts_ns int64, file string, file_offset int64, data binary"),
        ("seg_len", pa.list_(pa.int32())),
        ("seg_ts_ns", pa.list_(pa.int64())),
        ("seg_off", pa.list_(pa.int64())),
        *columns("syn bool, fin bool, rst bool"),
        ("holes", pa.list_(pa.struct([("at", pa.int32()), ("len", pa.int32())]))),
        *columns("dup_bytes int64, conflict_bytes int64"),
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
    columns(
        f"{_INCARNATION}, frame_no int64, is_response bool",
        "api_key int16, api_version int16, header_version int8, correlation_id int32, client_id string",
        "ts_first_ns int64, ts_last_ns int64, packet_first int64, packet_last int64, segments int32",
        "size int32, truncated bool, after_gap bool",
        "pair_status string, request_frame_no int64, latency_ns int64, frame binary",
    )
)
"""A row is a request or response, `frame` without its four-byte length (null if the capture cut it short).

`pair_status` is paired, no_response, no_request, mismatch or acks0; a response has its request's API (-1 without one)
and the latency from the request's last byte to its own last.
"""

CONN_EVENTS = pa.schema(columns(_INCARNATION, "dir int8, ts_ns int64, kind string, bytes int64, detail string"))
"""Events of a connection: the kinds are those of docs/reference/captured-frames.md."""

FILE_EVENTS = pa.schema(columns("file string, file_offset int64, kind string, count int64, detail string"))
"""File parts that are in no table: fragments, not_tcp, unknown_link, cut_header, truncated, corrupt, quarantined."""

MESSAGES = pa.schema(
    [
        *[FRAMES.field(name) for name in FRAMES.names if name != "frame"],
        *columns("api_name string, decode_status string, error_offset int32, error string"),
        *columns("roundtrip bool, first_diff_offset int32"),
        ("unknown_tags", pa.list_(pa.int64())),
        ("body", pa.string()),
    ]
)
"""A row is a decoded frame: `decode_status` is ok, unknown_api, unknown_version, error, opaque or truncated; `body` is
JSON as Kafka's converters write it (on Spark optionally a VARIANT).
"""

RECORDS = pa.schema(
    [
        *columns(f"{_INCARNATION}, frame_no int64, is_response bool, api_key int16, correlation_id int32"),
        *columns("ts_last_ns int64, packet_last int64, position int64"),
        *columns("topic string, topic_id string, partition int32, snapshot string"),
        *columns("offset int64, leader_epoch int32, timestamp_ms int64"),
        *columns("compression string, producer_id int64, producer_epoch int16, key binary, value binary"),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        *columns("record string, record_api_key int16, record_version int16, error string, body string"),
    ]
)
"""A row is a record in a Produce request, a Fetch response or FetchSnapshot responses.

The same record is a row for each frame that carried it (of a snapshot: the frame with the last byte of its batch);
`position` is that of its batch in the partition's bytes in the frame, or in the snapshot. `offset` is the producer's in
a request, `snapshot` is null for records of a log. `leader_epoch`, `compression`, `producer_id` and `producer_epoch`
are those of the batch. A record of the metadata log, and any control record, has its Kafka name in `record` and JSON
in `body`; the others have `key`, `value` and `headers`. `error` is the reason why a record, the rest of a batch or of
a snapshot could not be read.
"""

FORWARDED = pa.schema([*MESSAGES, *columns("principal string, client_host string, envelope_correlation_id int32")])
"""A row is a request or response that an Envelope carried, decoded like MESSAGES.

`conn_id`, `incarnation`, `frame_no` and `is_response` are those of the Envelope in MESSAGES, and so are its times and
pairing. `principal` (`User:alice`) and `client_host` are of the client whose request was forwarded.
"""

EXCHANGES = pa.schema(
    columns(
        f"{_INCARNATION}, api_key int16, api_version int16, correlation_id int32, client_id string",
        "request_frame_no int64, response_frame_no int64, request_ts_ns int64, response_ts_ns int64, latency_ns int64",
        "request binary, response binary",
    )
)
"""A row is a request with its response, both as frames; times are those of the last bytes."""

REPLAY_RESULTS = pa.schema(
    [
        *columns("run_id string, session string, mode string, number int64"),
        *[EXCHANGES.field(name) for name in EXCHANGES.names if name not in ("request", "response", "latency_ns")],
        *columns("sent_ns int64, recv_ns int64, captured_latency_ns int64, latency_ns int64"),
        *columns("status string, detail string, raw_equal bool, equal bool"),
        *columns("captured_response binary, live_response binary"),
    ]
)
"""A row is a replayed exchange; `status` is ok, timeout, closed, error or left_out (reason in `detail`)."""

_OF_EXCHANGE = ("run_id", "session", "number", "conn_id", "incarnation", "request_frame_no", "api_key", "api_version")
DIFFS = pa.schema(
    [
        *(REPLAY_RESULTS.field(name) for name in _OF_EXCHANGE),
        *columns("path string, kind string, expected string, actual string, rule string"),
    ]
)
"""A row is a difference of a live response from the captured one: missing, extra, changed, order or volatile_ok."""
