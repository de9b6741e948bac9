"""Controller addresses in responses and in the metadata log, and snapshots that change their size."""

from mockraft.spark_replay.endpoints import translate_log, translate_message, translate_response
from mockraft.spark_replay.snapshot_positions import SnapshotPositions
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.connection import read_response, write_response
from mockraft.wire.messages import describe_quorum_response, fetch_snapshot_request, fetch_snapshot_response
from mockraft.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from mockraft.wire.messages.vote_response import NodeEndpoint, VoteResponse
from mockraft.wire.records.k_raft_version_record import KRaftVersionRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.register_controller_record import ControllerEndpoint, RegisterControllerRecord
from mockraft.wire.records.voters_record import Endpoint, Voter, VotersRecord

LONG = "a-proxy-with-a-name-that-is-longer.example"


def to_proxy(host: str, port: int) -> tuple[str, int]:
    return (LONG, port + 1) if host == "c1" else (host, port)


def control_batch(host: str = "c1") -> bytes:
    voter = Voter(
        voter_id=3000, voter_directory_id=bytes(16), endpoints=[Endpoint(name="CONTROLLER", host=host, port=9)]
    )
    pairs = [
        (record_batch.control_key(record_batch.KRAFT_VERSION), KRaftVersionRecord(k_raft_version=1).write(0)),
        (record_batch.control_key(record_batch.KRAFT_VOTERS), VotersRecord(voters=[voter]).write(0)),
    ]
    return record_batch.encode_control(pairs, base_offset=0, leader_epoch=1, timestamp_ms=5)


def registration_batch(base_offset: int) -> bytes:
    endpoint = ControllerEndpoint(name="CONTROLLER", host="c1", port=9, security_protocol=0)
    record = RegisterControllerRecord(controller_id=3000, incarnation_id=bytes(16), end_points=[endpoint])
    values = [metadata_log_frame.encode(NoOpRecord(), 0), metadata_log_frame.encode(record, 0)]
    return record_batch.encode(values, base_offset=base_offset, leader_epoch=1, timestamp_ms=5)


def quiet_batch(base_offset: int, records: int = 3) -> bytes:
    values = [metadata_log_frame.encode(NoOpRecord(), 0)] * records
    return record_batch.encode(values, base_offset=base_offset, leader_epoch=1, timestamp_ms=5)


def test_voters_and_controllers_in_the_log_are_translated_and_other_batches_stay_byte_for_byte() -> None:
    log = control_batch() + quiet_batch(2) + registration_batch(5)
    translated = translate_log(log, to_proxy)
    assert translated != log
    assert quiet_batch(2) in translated
    old, new = (list(record_batch.read_batches(each)) for each in (log, translated))
    assert [batch._replace(records=[]) for batch in new] == [batch._replace(records=[]) for batch in old]
    (voter,) = VotersRecord.read(new[0].records[1][1] or b"", 0).voters
    assert (voter.endpoints[0].host, voter.endpoints[0].port) == (LONG, 10)
    registered = metadata_log_frame.decode(new[2].records[1][1] or b"").record
    assert (registered.end_points[0].host, registered.end_points[0].port) == (LONG, 10)
    assert new[0].records[0] == old[0].records[0]


def test_translating_there_and_back_gives_the_same_bytes() -> None:
    log = control_batch() + quiet_batch(2) + registration_batch(5)
    back = translate_log(translate_log(log, to_proxy), lambda host, port: ("c1", port - 1))
    assert back == log


def test_non_batch_bytes_are_unchanged() -> None:
    torn = control_batch()[:-5]
    assert translate_log(torn, to_proxy) == torn
    broken = bytearray(control_batch())
    broken[-1] ^= 1
    assert translate_log(bytes(broken) + control_batch(), to_proxy) == bytes(broken) + control_batch()
    assert translate_log(control_batch("c2"), to_proxy) == control_batch("c2")


def test_translates_node_endpoints_only() -> None:
    response = VoteResponse(node_endpoints=[NodeEndpoint(node_id=1, host="c1", port=9)])
    frame = write_response(response.write(2), 77, 1)[4:]
    translated = translate_response(frame, 52, 2, to_proxy)
    assert translated is not None
    (node,) = read_response(translated[4:], 52, 2).node_endpoints
    assert (node.host, node.port, translated[4:8]) == (LONG, 10, (77).to_bytes(4))
    assert translate_response(write_response(VoteResponse().write(2), 77, 1)[4:], 52, 2, to_proxy) is None


def test_describe_quorum_names_listeners_and_describe_cluster_controllers_but_not_brokers() -> None:
    listener = describe_quorum_response.Listener(name="CONTROLLER", host="c1", port=9)
    node = describe_quorum_response.Node(node_id=1, listeners=[listener])
    assert translate_message(describe_quorum_response.DescribeQuorumResponse(nodes=[node]), to_proxy)
    assert (listener.host, listener.port) == (LONG, 10)
    for endpoint_type, translated in ((1, False), (2, True)):
        brokers = [DescribeClusterBroker(broker_id=1, host="c1", port=9)]
        response = DescribeClusterResponse(endpoint_type=endpoint_type, brokers=brokers)
        assert translate_message(response, to_proxy) is translated
        assert brokers[0].host == (LONG if translated else "c1")


def read_through(snapshot: bytes, piece_bytes: int) -> bytes:
    """Read a snapshot in pieces as Kafka's reader does, until its reported size is reached."""
    positions = SnapshotPositions(to_proxy)
    got, size = b"", -1
    while len(got) != size:
        place = fetch_snapshot_request.PartitionSnapshot(
            partition=0, snapshot_id=fetch_snapshot_request.SnapshotId(end_offset=90, epoch=1), position=len(got)
        )
        request = fetch_snapshot_request.FetchSnapshotRequest(
            topics=[fetch_snapshot_request.TopicSnapshot(partitions=[place])]
        )
        positions.translate_request(request)
        piece = fetch_snapshot_response.PartitionSnapshot(
            index=0,
            snapshot_id=fetch_snapshot_response.SnapshotId(end_offset=90, epoch=1),
            size=len(snapshot),
            position=place.position,
            unaligned_records=snapshot[place.position : place.position + piece_bytes],
        )
        response = fetch_snapshot_response.FetchSnapshotResponse(
            topics=[fetch_snapshot_response.TopicSnapshot(partitions=[piece])]
        )
        positions.translate_response(response, {0: len(got)})
        assert piece.position == len(got)
        assert piece.unaligned_records
        got += piece.unaligned_records
        size = piece.size
    return got


def test_a_snapshot_in_pieces_of_any_size_is_read_whole_and_its_size_ends_the_reading() -> None:
    batches = [control_batch(), quiet_batch(2), registration_batch(5), quiet_batch(7, 200), quiet_batch(207)]
    snapshot = b"".join(batches)
    for piece_bytes in (*range(1, 400, 7), len(snapshot), 1 << 20):
        got = read_through(snapshot, piece_bytes)
        offsets = [batch.base_offset for batch in record_batch.read_batches(got)]
        assert offsets == [0, 2, 5, 7, 207]
        if piece_bytes >= max(map(len, batches)):
            assert got == translate_log(snapshot, to_proxy)
