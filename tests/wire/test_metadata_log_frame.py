import pytest
from mockraft.wire import metadata_log_frame, records
from mockraft.wire.errors import WireError
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.leader_change_message import LeaderChangeMessage
from mockraft.wire.records.no_op_record import NoOpRecord

from ..rows import each_row

METADATA_RECORDS = [cls for cls in map(records.by_name, records.NAMES) if cls.api_key >= 0]

# Values that Kafka 4.3.1's controller wrote.
KAFKAS = [
    (RecordAt(NoOpRecord(), 0), "01140000"),
    (
        RecordAt(FeatureLevelRecord(name="metadata.version", feature_level=30), 0),
        "010c00116d657461646174612e76657273696f6e001e00",
    ),
    (
        RecordAt(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, fenced=-1), 0),
        "0111000000000100000000000000090100 01ff",
    ),
]


@each_row(("record", "hex_text"), KAFKAS)
def test_the_frame_is_kafkas_byte_for_byte(record: RecordAt, hex_text: str) -> None:
    assert metadata_log_frame.encode(*record) == bytes.fromhex(hex_text)
    assert metadata_log_frame.decode(bytes.fromhex(hex_text)) == record


@each_row("record_class", METADATA_RECORDS)
def test_every_metadata_record_comes_back_in_every_version(record_class: type) -> None:
    for version in range(record_class.min_version, record_class.max_version + 1):  # type: ignore[attr-defined]
        value = metadata_log_frame.encode(record_class(), version)
        assert metadata_log_frame.decode(value) == RecordAt(record_class(), version)


@each_row(
    ("value", "message"),
    [
        (b"", "ends inside its frame"),
        (b"\x01", "ends inside its frame"),
        (b"\x01\x14", "ends inside its frame"),
        (b"\x01\x94", "ends inside its frame"),
        (b"\x00\x14\x00\x00", "frame version 0"),
        (b"\x02\x14\x00\x00", "frame version 2"),
        (b"\x01\x63\x00\x00", "no metadata record of type 99"),
        (b"\x01\xff\xff\xff\xff\x0f\x00\x00", "no metadata record of type"),
        (b"\x01\xff\xff\xff\xff\xff\x00\x00", "more than 32 bits"),
        (b"\x01\x14\x05\x00", "NoOpRecord has no version 5"),
        (b"\x01\x14\x00\x00\x00", "1 bytes after"),
    ],
)
def test_refuses_unknown_records(value: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        metadata_log_frame.decode(value)


def test_a_record_cut_short_anywhere_is_refused() -> None:
    value = metadata_log_frame.encode(*KAFKAS[1][0])
    for size in range(len(value)):
        with pytest.raises(WireError):
            metadata_log_frame.decode(value[:size])


def test_a_control_record_has_no_frame() -> None:
    with pytest.raises(WireError, match="not a metadata record"):
        metadata_log_frame.encode(LeaderChangeMessage(), 0)
