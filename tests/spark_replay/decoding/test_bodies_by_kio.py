"""kio, a codec with a native reader, decodes the captured bodies to the same values."""

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from kio.serial import entity_reader, entity_writer
from mockraft.spark_replay.decoding import decode_frames
from mockraft.wire import messages
from mockraft.wire.json_form import from_json
from mockraft.wire.primitives import ZERO_UUID
from mockraft.wire.schema_files import schema

from ...wire import test_oracle_kio

# What kio reads as none: the uuid of zeros, and a time that there is not.
KIO_NONE = (ZERO_UUID, -1)


def body_of(data: bytes, api_key: int, api_version: int, is_response: bool) -> bytes:
    """Return the bytes of a frame after its header."""
    which = messages.response_header_version if is_response else messages.request_header_version
    header = messages.by_name("ResponseHeader" if is_response else "RequestHeader")
    _, at = header.read_from(data, which(api_key, api_version), 0)
    return data[at:]


@pytest.mark.parametrize(("name", "frames"), [("controller-4.3.1", 1726), ("brokers-4.3.1", 931)])
def test_kio_reads_every_captured_body_to_the_values_of_its_json(
    captured: dict[str, list[pa.RecordBatch]], name: str, frames: int
) -> None:
    compared = 0
    for batch in captured[name]:
        bodies = decode_frames(batch)["body"].to_pylist()
        for row, text in zip(batch.to_pylist(), bodies, strict=True):
            key, version, is_response = row["api_key"], row["api_version"], row["is_response"]
            cls: Any = messages.response(key) if is_response else messages.request(key)
            data = body_of(row["frame"], key, version, is_response)
            kio_class = test_oracle_kio.kio_class(cls.__name__, version)
            entity, size = entity_reader(kio_class)(data, 0)
            assert size == len(data)
            message = from_json(cls, json.loads(text), version)
            values = test_oracle_kio.our_leaves(schema(cls.__name__).root, message, version)
            for their, our in zip(test_oracle_kio.leaves(entity), values, strict=True):
                assert their == our or (their is None and our in KIO_NONE)
            written = io.BytesIO()
            entity_writer(kio_class)(written, entity)
            assert written.getvalue() == data == message.write(version)
            compared += 1
    assert compared == frames
