from dataclasses import replace

import pytest
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.metadata_log import configured_history
from mockraft.server.controller.quorum.voter_set import (
    BEFORE_THE_LOG,
    NO_DIRECTORY_ID,
    ReplicaKey,
    VoterEndpoint,
    VoterHistory,
    VoterNode,
    VoterSet,
    control_records,
    read_addresses,
    read_voters,
    voters_record,
)
from mockraft.wire import record_batch, uuids

from ....rows import each_row

DIRECTORY_ID = bytes.fromhex("e4503f1825d64cdaab2eba68c7a3116d")
OTHER_ID = bytes(range(16))

# The values of the control records with which Kafka 4.3.1's controller began its log.
KRAFT_VERSION = bytes.fromhex("0000000100")
VOTERS = bytes.fromhex(
    "00000200000bb8e4503f1825d64cdaab2eba68c7a3116d020b434f4e54524f4c4c45520a3132372e302e302e314a950000000001000000"
)


def node(voter_id: int, directory_id: bytes = DIRECTORY_ID, port: int = 19093) -> VoterNode:
    return VoterNode(ReplicaKey(voter_id, directory_id), (VoterEndpoint("CONTROLLER", "127.0.0.1", port),))


TWO = VoterSet([node(2), node(1)])


def batch_at(offset: int, pairs: list[tuple[bytes, bytes]]) -> record_batch.Batch:
    data = record_batch.encode_control(pairs, base_offset=offset, leader_epoch=1, timestamp_ms=0)
    (batch,) = record_batch.read_batches(data)
    return batch


def test_the_records_are_kafkas_byte_for_byte() -> None:
    pairs = control_records(1, VoterSet([node(3000)]))
    assert [value for _, value in pairs] == [KRAFT_VERSION, VOTERS]
    assert [key.hex() for key, _ in pairs] == ["00000005", "00000006"]
    assert control_records(0, VoterSet([node(3000)])) == []


def test_a_voters_record_restores_the_voters() -> None:
    history = VoterHistory(0, VoterSet())
    history.apply(batch_at(5, control_records(1, TWO)))
    assert (history.kraft_version, history.voters, history.voters_offset) == (1, TWO, 6)


def test_truncated_records_have_no_effect() -> None:
    history = VoterHistory(1, TWO)
    assert history.voters_offset == BEFORE_THE_LOG
    history.apply(batch_at(5, [voters_record(VoterSet([node(1)]))]))
    history.apply(batch_at(9, [voters_record(VoterSet([node(2)]))]))
    assert history.control_records_at(9) == control_records(1, VoterSet([node(1)]))
    assert history.control_records_at(5) == control_records(1, TWO)
    history.truncate(9)
    assert history.voters == VoterSet([node(1)])
    history.truncate(5)
    assert (history.voters, history.voters_offset) == (TWO, BEFORE_THE_LOG)


def test_snapshot_contains_the_voters_at_its_last_offset() -> None:
    history = VoterHistory(0, VoterSet())
    history.apply(batch_at(0, control_records(1, TWO)), 41)
    assert history.voters_offset == 41


def test_a_voter_is_its_id_in_its_directory() -> None:
    assert TWO.is_voter(ReplicaKey(1, DIRECTORY_ID))
    assert not TWO.is_voter(ReplicaKey(1, OTHER_ID))
    assert not TWO.is_voter(ReplicaKey(3, DIRECTORY_ID))
    assert VoterSet([node(1, NO_DIRECTORY_ID)]).is_voter(ReplicaKey(1, OTHER_ID)), "configuration knows no directories"
    assert VoterSet([node(1)]).is_only_voter(node(1).key)
    assert not TWO.is_only_voter(node(1).key)


def test_voters_are_added_once() -> None:
    three = TWO.added(node(3))
    assert three is not None
    assert list(three.nodes) == [1, 2, 3]
    assert TWO.added(node(1, OTHER_ID)) is None


def test_voters_are_removed_by_id_and_directory_but_the_last() -> None:
    assert TWO.removed(ReplicaKey(1, OTHER_ID)) is None
    assert TWO.removed(node(3).key) is None
    assert TWO.removed(node(1).key) == VoterSet([node(2)])
    assert VoterSet([node(2)]).removed(node(2).key) is None


def test_voters_are_updated() -> None:
    moved = node(1, port=1)
    assert TWO.needs_update(moved)
    assert not TWO.needs_update(node(1))
    assert not TWO.needs_update(node(1, OTHER_ID))
    assert TWO.updated(moved) == VoterSet([moved, node(2)])
    assert TWO.updated(node(1, OTHER_ID)) is None
    assert TWO.updated(node(1, OTHER_ID), ignore_directory_id=True) == VoterSet([node(1, OTHER_ID), node(2)])
    assert TWO.updated(node(3), ignore_directory_id=True) is None


def test_voters_are_read_as_controller_quorum_voters() -> None:
    found = read_voters("1@a:9093, 2@[::1]:9094", "C")
    assert [(n.key, n.endpoints[0]) for n in found.nodes.values()] == [
        (ReplicaKey(1, NO_DIRECTORY_ID), VoterEndpoint("C", "a", 9093)),
        (ReplicaKey(2, NO_DIRECTORY_ID), VoterEndpoint("C", "::1", 9094)),
    ]


def test_voters_are_read_as_initial_controllers() -> None:
    found = read_voters(f"1@a:9093:{uuids.text_of(OTHER_ID)}", "C")
    assert found.nodes[1] == VoterNode(ReplicaKey(1, OTHER_ID), (VoterEndpoint("C", "a", 9093),))


@each_row("text", ["", "1", "1@a", "x@a:1", "1@:1", "1@a:0", "1@a:99999", "1@a:1:x", "1@a:1,1@b:2"])
def test_records_without_voters_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_voters(text, "C")


def test_addresses_are_read() -> None:
    assert read_addresses("a:1,[::1]:2") == [("a", 1), ("::1", 2)]
    assert read_addresses("") == []
    for text in ("a", "a:0", ":1", "a:1:b"):
        with pytest.raises(ValueError, match="is not an address"):
            read_addresses(text)


def test_the_address_of_a_voter_is_found_by_id_and_listener() -> None:
    assert TWO.endpoint(2, "CONTROLLER") == VoterEndpoint("CONTROLLER", "127.0.0.1", 19093)
    assert (TWO.endpoint(9, "CONTROLLER"), TWO.endpoint(2, "OTHER")) == (None, None)


def test_a_lone_controller_without_kraft_version_has_no_directory_and_supports_no_level() -> None:
    history = configured_history(ControllerConfig(kraft_version=0), node(3000))
    ((found,), version) = history.voters.nodes.values(), history.kraft_version
    assert (found.key, version) == (ReplicaKey(3000, NO_DIRECTORY_ID), 0)
    assert (found.kraft_version_min, found.kraft_version_max) == (0, 0)
    alone = configured_history(ControllerConfig(kraft_version=1), node(3000))
    assert (alone.kraft_version, alone.voters) == (1, VoterSet([node(3000)]))


def test_equal_voter_sets_have_one_hash() -> None:
    assert hash(VoterSet([node(1), node(2)])) == hash(TWO)


def test_a_port_has_at_most_16_bits() -> None:
    assert read_addresses("a:65535") == [("a", 65_535)]
    with pytest.raises(ValueError, match="'a:65536' is not an address"):
        read_addresses("a:65536")


def test_equal_sets_have_the_same_hash_and_others_another() -> None:
    assert hash(VoterSet([node(1), node(2)])) == hash(TWO)
    assert hash(VoterSet([node(1)])) != hash(TWO)


def test_the_record_has_the_supported_kraft_versions() -> None:
    supporting = replace(node(1), kraft_version_min=1, kraft_version_max=3)
    (voter,) = VoterSet([supporting]).as_record().voters
    found = voter.k_raft_version_feature
    assert (found.min_supported_version, found.max_supported_version) == (1, 3)
