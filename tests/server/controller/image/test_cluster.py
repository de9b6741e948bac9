"""Registrations in the image: the effects of change records, and their quirks."""

from typing import Any

import pytest
from mockraft.server.controller.image import Image
from mockraft.serving import directory_ids
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord


def uuid(number: int, top: int = 0x10) -> bytes:
    return bytes([top]) + bytes(14) + bytes([number])


A, B, C = uuid(1), uuid(2), uuid(3)


def image_with_broker(**fields: Any) -> Image:
    image = Image()
    values = {"broker_id": 1, "broker_epoch": 5, "fenced": True, "log_dirs": [A, B], **fields}
    image.apply(RegisterBrokerRecord(**values), 17)
    return image


def changed(**fields: Any) -> Any:
    image = image_with_broker(cordoned_log_dirs=[A])
    record = BrokerRegistrationChangeRecord(**{"broker_id": 1, "broker_epoch": 5, **fields})
    image.apply(record, 18)
    return image.cluster.brokers[1]


def test_the_registration_offset_is_the_records_own() -> None:
    assert image_with_broker().cluster.brokers[1].registration_offset == 17


def test_directories_are_sorted_as_java_does_with_the_top_bit_first() -> None:
    high, low = uuid(1, 0x80), uuid(2, 0x7F)
    assert image_with_broker(log_dirs=[low, high]).cluster.brokers[1].log_dirs == (high, low)


@pytest.mark.parametrize(("fenced", "is_fenced"), [(1, True), (-1, False), (0, True)])
def test_fencing_changes_only_on_request(fenced: int, is_fenced: bool) -> None:
    assert changed(fenced=fenced).fenced is is_fenced


def test_controlled_shutdown_is_entered_and_outlives_fencing() -> None:
    assert changed(in_controlled_shutdown=1).in_controlled_shutdown is True
    assert changed(in_controlled_shutdown=1, fenced=1).is_active is False


def test_no_log_dirs_in_a_change_are_no_change() -> None:
    assert changed(log_dirs=[]).log_dirs == (A, B)
    assert changed(log_dirs=[B]).log_dirs == (B,)


def test_cordoned_null_is_no_change_and_an_empty_list_is_one() -> None:
    assert changed(cordoned_log_dirs=None).cordoned_log_dirs == (A,)
    assert changed(cordoned_log_dirs=[]).cordoned_log_dirs == ()


def test_a_change_keeps_the_registration_offset() -> None:
    assert changed(fenced=-1).registration_offset == 17


@pytest.mark.parametrize(("record", "fenced"), [(FenceBrokerRecord, True), (UnfenceBrokerRecord, False)])
def test_old_fencing_records_are_understood(
    record: type[FenceBrokerRecord | UnfenceBrokerRecord], fenced: bool
) -> None:
    image = image_with_broker(fenced=not fenced)
    image.apply(record(id=1, epoch=5), 18)
    assert image.cluster.brokers[1].fenced is fenced


def test_a_change_of_another_epoch_is_a_bug_in_the_log() -> None:
    with pytest.raises(AssertionError, match="another epoch"):
        changed(broker_epoch=4)


def test_directories_belong_to_the_broker_that_registered_them_last() -> None:
    image = image_with_broker()
    image.apply(RegisterBrokerRecord(broker_id=1, broker_epoch=9, log_dirs=[B, C]), 30)
    assert image.cluster.broker_by_directory == {B: 1, C: 1}


def test_unregistering_frees_the_directories() -> None:
    image = image_with_broker()
    image.apply(UnregisterBrokerRecord(broker_id=1, broker_epoch=5), 18)
    assert image == Image()


@pytest.mark.parametrize(
    ("log_dirs", "cordoned", "usable"),
    [
        ([], [A], True),
        ([A, B], None, True),
        ([A, B], [], True),
        ([A, B], [A], True),
        ([A, B], [B, A, C], False),
    ],
)
def test_a_broker_with_all_directories_cordoned_takes_no_new_replicas(
    log_dirs: list[bytes], cordoned: list[bytes] | None, usable: bool
) -> None:
    broker = image_with_broker(log_dirs=log_dirs, cordoned_log_dirs=cordoned).cluster.brokers[1]
    assert broker.has_uncordoned_log_dirs is usable


@pytest.mark.parametrize(
    ("log_dirs", "directory"), [([], directory_ids.MIGRATING), ([A], A), ([A, B], directory_ids.UNASSIGNED)]
)
def test_new_replica_is_placed_in_the_only_directory(log_dirs: list[bytes], directory: bytes) -> None:
    assert image_with_broker(log_dirs=log_dirs).cluster.default_dir(1) == directory


def test_a_new_replica_of_an_unknown_broker_is_unassigned() -> None:
    assert Image().cluster.default_dir(1) == directory_ids.UNASSIGNED


@pytest.mark.parametrize(
    ("log_dirs", "directory", "online"),
    [
        ([A], A, True),
        ([A], B, False),
        ([], B, True),
        ([A], directory_ids.UNASSIGNED, True),
        ([A], directory_ids.MIGRATING, True),
        ([], directory_ids.LOST, False),
    ],
)
def test_which_directories_are_online(log_dirs: list[bytes], directory: bytes, online: bool) -> None:
    assert image_with_broker(log_dirs=log_dirs).cluster.brokers[1].has_online_dir(directory) is online


@pytest.mark.parametrize(
    ("directory", "reserved"),
    [
        (bytes(16), True),
        (bytes(15) + bytes([99]), True),
        (bytes(15) + bytes([100]), False),
        (bytes(8) + b"\xff" * 8, True),
        (bytes(7) + b"\x01" + bytes(8), False),
    ],
)
def test_the_first_hundred_ids_are_reserved_and_those_with_a_negative_half(directory: bytes, reserved: bool) -> None:
    assert directory_ids.is_reserved(directory) is reserved
