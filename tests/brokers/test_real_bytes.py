"""Bytes written by a simulated broker, compared with those of real brokers (captured on the wire)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from mockraft.brokers.assignments import Assignments
from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.config import SUPPORTED_FEATURES, BrokerConfig, Listener, draw_config, registration_of
from mockraft.brokers.lifecycle import BrokerState, Lifecycle
from mockraft.brokers.log_dirs.placement import DirectoryAt
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

CLUSTER_ID = "j0_tURkvoEJm7cr58hGlOA"
METADATA_DIR = bytes.fromhex("ffb89ba5cd8331683d5c94e367b9dbf2")
# A real broker sends its features in no order; this is the one it had here.
FEATURE_ORDER = (
    "transaction.version",
    "eligible.leader.replicas.version",
    "metadata.version",
    "share.version",
    "kraft.version",
    "group.version",
    "streams.version",
)
FIRST_FETCH = (
    "000001f400000000001000000000000000ffffffff0200000000000000000000000000000001020000000000000000000000000000000000"
    "000000ffffffffffffffff00000000020010ffb89ba5cd8331683d5c94e367b9dbf20108ffffffffffffffff000101020017176a305f7455"
    "526b766f454a6d376372353868476c4f41010d00000001ffffffffffffffff00"
)
REGISTRATION = (
    "00000001176a305f7455526b766f454a6d376372353868476c4f415dfa77a53fef4e1e850a030b8599f002020a504c41494e544558540a31"
    "32372e302e302e31547b00000008147472616e73616374696f6e2e76657273696f6e000000020021656c696769626c652e6c65616465722e"
    "7265706c696361732e76657273696f6e0000000100116d657461646174612e76657273696f6e00070021000e73686172652e76657273696f"
    "6e00000002000e6b726166742e76657273696f6e00000001000e67726f75702e76657273696f6e00000001001073747265616d732e766572"
    "73696f6e0000000100000003da400eb098bdf3000f346db86a7a2345697d7c6f6a32f8a5a8d4722bd5e33f56ffffffffffffffff00"
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
        incarnation_id=bytes.fromhex("5dfa77a53fef4e1e850a030b8599f002"),
        metadata_directory_id=METADATA_DIR,
        log_dirs=(
            DirectoryAt("/d1", bytes.fromhex("697d7c6f6a32f8a5a8d4722bd5e33f56")),
            DirectoryAt("/d0", bytes.fromhex("da400eb098bdf3000f346db86a7a2345")),
        ),
        listeners=(Listener("PLAINTEXT", "127.0.0.1", 21627),),
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
