"""Kafka's binary formats: protocol messages, metadata records, record batches, frames, and their JSON form.

This package turns bytes into values and values into bytes, and does nothing else. Apart from `client` it has no
sockets, no asyncio, no clock and no randomness, and it imports no other package of mockraft except the spec files.

Messages. `messages` and `records` hold one generated class per message, which covers all of its versions; they are
written by `mockraft.codegen` from Kafka's JSON specs and correspond to Kafka's own generated classes
(`BrokerHeartbeatRequestData`, …). `cls.read(data, version)` consumes all of `data`, `message.write(version)` returns
bytes. The classes are found by name, API key or record type and are imported on first use.

Layers, from the inside out:

- `primitives`, `shapes`, `message`: what the generated code calls and inherits (Kafka's `ByteUtils`, `ApiMessage`);
- `metadata_log_frame`, `record_batch`: the metadata log (`MetadataRecordSerde`, `DefaultRecordBatch`);
- `connection`: frames, request and response headers (`RequestHeader`, `NetworkReceive`);
- `json_form`: the shape of Kafka's `JsonConverter` classes;
- `schema_files`, `schema_reading`, `explain`: a second, slow codec driven by the specs. It shares no code with the
    generated one, so that tests can compare the two, and it knows the meaning of every byte;
- `overlay`: messages of a proposal in place of Kafka's own.

Invariants: reading any bytes returns a message or raises WireError, in time and memory bounded by the input; reading
and then writing in the same version gives the same value back; unknown tagged fields are kept. Writing raises WireError
if a version has no field for a value that must not be dropped (Kafka's `ignorable: false`).
"""
