"""Conversion of mockraft's messages to kio's entities and back."""

import subprocess
import sys

import pytest
from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest as KioHeartbeat
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest as KioRegistration
from kio.schema.broker_registration.v4.request import Listener as KioListener
from kio.schema.types import BrokerId
from kio.schema.vote.v2.response import VoteResponse as KioVote
from kio.static.primitive import i16, i64, u16
from mockraft.wire import kio_entities, messages, records
from mockraft.wire.errors import WireError
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.records.k_raft_version_record import KRaftVersionRecord

from ..rows import each_row

UUID = bytes(range(1, 17))


def test_an_entity_becomes_a_message_and_its_version() -> None:
    entity = KioHeartbeat(
        broker_id=BrokerId(1),
        broker_epoch=i64(7),
        current_metadata_offset=i64(9),
        want_fence=False,
        want_shut_down=True,
    )
    message, version = kio_entities.from_kio(entity)
    assert (message, version) == (
        BrokerHeartbeatRequest(broker_id=1, broker_epoch=7, current_metadata_offset=9, want_shut_down=True),
        1,
    )


@each_row("version", [0, 1, 2])
def test_message_becomes_an_entity_of_the_requested_version(version: int) -> None:
    entity = kio_entities.to_kio(BrokerHeartbeatRequest(broker_id=1, want_fence=True), version)
    assert type(entity).__module__ == f"kio.schema.broker_heartbeat.v{version}.request"
    assert entity.broker_id == 1
    assert entity.want_fence is True


@each_row("name", ["BrokerRegistration", "Vote", "Fetch", "CreateTopics", "AlterPartition", "DescribeCluster"])
@each_row("ending", ["Request", "Response"])
def test_every_version_of_a_message_round_trips(name: str, ending: str) -> None:
    cls = messages.by_name(name + ending)
    for version in range(cls.min_version, cls.max_version + 1):
        message = cls()
        entity = kio_entities.to_kio(message, version)
        assert kio_entities.is_kio(entity)
        assert kio_entities.from_kio(entity) == (message, version)


def test_control_records_are_entities_too() -> None:
    record = KRaftVersionRecord(k_raft_version=1)
    entity = kio_entities.to_kio(record, 0)
    assert kio_entities.from_kio(entity) == (record, 0)


def test_refuses_anything_but_whole_kio_messages() -> None:
    listener = KioListener(name="PLAINTEXT", host="b1", port=u16(9092), security_protocol=i16(0))
    for wrong in (listener, BrokerHeartbeatRequest(), {"brokerId": 1}):
        with pytest.raises(TypeError, match="no message that mockraft knows"):
            kio_entities.from_kio(wrong)


def test_reports_messages_and_values_that_kio_lacks() -> None:
    with pytest.raises(LookupError, match=r"kio has no RegisterBrokerRecord v0"):
        kio_entities.to_kio(records.by_name("RegisterBrokerRecord")(), 0)
    with pytest.raises(LookupError, match=r"v9"):
        kio_entities.to_kio(BrokerHeartbeatRequest(), 9)
    with pytest.raises(WireError, match=r"kio cannot hold BrokerHeartbeatResponse v1.*"):
        kio_entities.to_kio(BrokerHeartbeatResponse(error_code=9999), 1)


def test_kio_is_imported_lazily() -> None:
    source = (
        "import sys; from mockraft.wire import kio_entities; kio_entities.is_kio(1); assert 'kio' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", source], check=False)
    assert done.returncode == 0
    assert not kio_entities.is_kio(KioRegistration)
    assert not kio_entities.is_kio(KioVote)
