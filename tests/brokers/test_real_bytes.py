"""Bytes written by a simulated broker, compared with those of real 4.3.1 brokers (captured on the wire)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from mockraft.brokers import SimulatedBroker
from mockraft.brokers.assignments import Assignments
from mockraft.brokers.config import BrokerConfig, Listener, draw_config, registration_of
from mockraft.brokers.features import SUPPORTED_FEATURES
from mockraft.brokers.lifecycle import BrokerState, Lifecycle
from mockraft.brokers.log_dirs.placement import DirectoryAt
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"
METADATA_DIR = bytes.fromhex("51fe2575b978203379b1931d7f5ef1e6")
# A real broker sends its features in no order; this is the one it had here.
FEATURE_ORDER = (
    "kraft.version",
    "group.version",
    "streams.version",
    "transaction.version",
    "eligible.leader.replicas.version",
    "metadata.version",
    "share.version",
)
FIRST_FETCH = (
    "000001f400000000001000000000000000ffffffff0200000000000000000000000000000001020000000000000000000000000000000000"
    "000000ffffffffffffffff0000000002001051fe2575b978203379b1931d7f5ef1e60108ffffffffffffffff000101020017177036365930"
    "735270514e47564b6a4b346f5467617577010d00000001ffffffffffffffff00"
)
REGISTRATION = (
    "00000001177036365930735270514e47564b6a4b346f54676175774240a9b04c3748b78f427d59758b0d59020a504c41494e544558540a"
    "3132372e302e302e314af8000000080e6b726166742e76657273696f6e00000001000e67726f75702e76657273696f6e0000000100107374"
    "7265616d732e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f6e000000020021656c696769626c652e6c6561"
    "6465722e7265706c696361732e76657273696f6e0000000100116d657461646174612e76657273696f6e0007001e000e73686172652e7665"
    "7273696f6e00000001000000034cff0b3e2d1a7544d612578b602651b761962285e4ca44f4c0d2211c8c8e92cfffffffffffffffff00"
)
ASSIGNMENT = (
    "00000002000000000000002603562e7f70e4f52e7a3fba4a3ff7cbcf1b0245d9fcee11724b91a3decb202b35dbc6030000000000000000"
    "0300000020a886cfcdab8fb90fa85482ac5997430245d9fcee11724b91a3decb202b35dbc60300000001000000000200000000"
)
STARTING = Lifecycle(state=BrokerState.STARTING, registered=True, broker_epoch=17)
RECOVERY = STARTING._replace(state=BrokerState.RECOVERY, caught_up=True)
READY = RECOVERY._replace(ready_to_unfence=True)
HEARTBEATS = [
    (STARTING, 0x10, "0000000100000000000000110000000000000010010000"),
    (STARTING, 0x11, "0000000100000000000000110000000000000011010000"),
    (RECOVERY, 0x11, "0000000100000000000000110000000000000011010001010101"),
    (READY, 0x13, "0000000100000000000000110000000000000013000001010101"),
    (READY._replace(state=BrokerState.RUNNING), 0x19, "0000000100000000000000110000000000000019000001010101"),
]


@pytest.fixture
def config() -> BrokerConfig:
    """The captured broker 1."""
    return replace(
        draw_config(1, CLUSTER_ID, (), random.Random(1)),
        incarnation_id=bytes.fromhex("4240a9b04c3748b78f427d59758b0d59"),
        metadata_directory_id=METADATA_DIR,
        log_dirs=(
            DirectoryAt("/d1", bytes.fromhex("61962285e4ca44f4c0d2211c8c8e92cf")),
            DirectoryAt("/d0", bytes.fromhex("4cff0b3e2d1a7544d612578b602651b7")),
        ),
        listeners=(Listener("PLAINTEXT", "127.0.0.1", 19192),),
        features={name: SUPPORTED_FEATURES[name] for name in FEATURE_ORDER},
    )


async def test_the_first_fetch(config: BrokerConfig) -> None:
    assert SimulatedBroker(config).observer.request().write(18).hex() == FIRST_FETCH


def test_the_registration(config: BrokerConfig) -> None:
    assert registration_of(config, 4).write(4).hex() == REGISTRATION


def test_an_older_registration_leaves_out_features_that_begin_at_0(config: BrokerConfig) -> None:
    assert [feature.name for feature in registration_of(config, 3).features] == ["metadata.version"]


@pytest.mark.parametrize(("life", "offset", "expected"), HEARTBEATS, ids=lambda value: getattr(value, "state", None))
async def test_heartbeats(config: BrokerConfig, life: Lifecycle, offset: int, expected: str) -> None:
    broker = SimulatedBroker(config)
    broker.view.apply(RecordAt(FeatureLevelRecord(name="metadata.version", feature_level=30), 0))
    broker.node.life = life
    broker.observer.applied_offset = offset
    assert broker.node.heart._heartbeat({}).write(2).hex() == expected


def test_an_assignment_of_replicas_to_directories() -> None:
    topic_id = bytes.fromhex("45d9fcee11724b91a3decb202b35dbc6")
    first, second = (bytes.fromhex(t) for t in ("562e7f70e4f52e7a3fba4a3ff7cbcf1b", "20a886cfcdab8fb90fa85482ac599743"))
    assignments = Assignments()
    placed = {(topic_id, 0): first, (topic_id, 3): first, (topic_id, 1): second, (topic_id, 2): second}
    for key, directory in placed.items():
        assignments.add(key, directory, 0)
    request = assignments.take(2, 0x26, placed)
    assert request is not None
    assert request.write(0).hex() == ASSIGNMENT
