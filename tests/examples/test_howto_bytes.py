"""Examples for docs/bytes.md: messages as Python objects, bytes and JSON."""

import pytest
from mockraft.wire import messages
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.metadata_log_frame import RecordAt, decode, encode
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord


def test_one_class_reads_and_writes_every_version() -> None:
    heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=17, current_metadata_offset=16, want_fence=True)
    assert heartbeat.write(version=2).hex() == "0000000100000000000000110000000000000010010000"

    assert messages.request(63) is messages.by_name("BrokerHeartbeatRequest")
    assert BrokerHeartbeatRequest.read(heartbeat.write(version=1), version=1) == heartbeat


def test_invalid_bytes_raise_wire_error() -> None:
    with pytest.raises(WireError):
        BrokerHeartbeatRequest.read(b"\x00\x00", version=2)


def test_messages_convert_to_kafkas_json() -> None:
    heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=17)
    tree = to_json(heartbeat, version=1)
    assert tree == {
        "brokerId": 1,
        "brokerEpoch": 17,
        "currentMetadataOffset": 0,
        "wantFence": False,
        "wantShutDown": False,
    }
    assert from_json(BrokerHeartbeatRequest, tree, version=1) == heartbeat


def test_metadata_records_are_framed() -> None:
    fence = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, fenced=1)
    value = encode(fence, version=0)
    assert value.hex() == "011100000000010000000000000009010001 01".replace(" ", "")
    assert decode(value) == RecordAt(fence, 0)
