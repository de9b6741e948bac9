"""Frames out of streams, responses to their requests."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from mockraft.spark_replay.captures import Endpoint
from mockraft.spark_replay.exchanges import ConnectionStatus, Exchange, pair_exchanges, read_exchanges
from mockraft.spark_replay.tcp_streams import Chunk, Connection
from mockraft.wire import api_keys

CAPTURES = Path(__file__).parents[1] / "captures"
CONNECTION = Connection(Endpoint("10.0.0.1", 40000), Endpoint("10.0.0.2", 9093), 1)


def request(correlation_id: int, body: bytes = b"", api_key: int = 63, version: int = 1) -> bytes:
    head = api_key.to_bytes(2) + version.to_bytes(2) + correlation_id.to_bytes(4) + b"\x00\x01a\x00"
    return len(head + body).to_bytes(4) + head + body


def response(correlation_id: int, body: bytes = b"\x00body") -> bytes:
    return (4 + len(body)).to_bytes(4) + correlation_id.to_bytes(4) + body


def chunk(data: bytes, from_client: bool = True, gap: int = 0, packet: int = 1) -> Chunk:
    return Chunk(CONNECTION, from_client, packet, packet * 10, data, gap, False)


def ids(exchanges: list[Exchange]) -> list[tuple[int, bool, bool]]:
    return [(e.correlation_id, e.request is not None, e.response is not None) for e in exchanges]


def test_a_response_is_paired_with_its_request() -> None:
    (exchange,) = pair_exchanges([chunk(request(7)), chunk(response(7), from_client=False, packet=2)])
    assert exchange.request is not None
    assert exchange.response is not None
    assert (exchange.api_key, exchange.api_version, exchange.correlation_id) == (63, 1, 7)
    assert (exchange.request.data, exchange.response.data) == (request(7)[4:], response(7)[4:])
    assert exchange.response.first_time_ns == 20


@pytest.mark.parametrize("size", [1, 2, 3, 5, 11, 1000])
def test_frames_do_not_depend_on_how_packets_cut_them(size: int) -> None:
    stream = b"".join(request(n, bytes(n)) for n in range(20))
    chunks = [chunk(stream[at : at + size], packet=at // size + 1) for at in range(0, len(stream), size)]
    exchanges = list(pair_exchanges(chunks))
    at = 0
    for n, exchange in enumerate(exchanges):
        assert exchange.request is not None
        assert exchange.request.data == request(n, bytes(n))[4:]
        end = at + len(request(n, bytes(n)))
        assert (exchange.request.first_packet, exchange.request.last_packet) == (at // size + 1, (end - 1) // size + 1)
        assert exchange.request.number == n
        at = end
    assert len(exchanges) == 20


def test_ids_pair_out_of_order_and_what_has_no_partner_comes_last() -> None:
    exchanges = pair_exchanges(
        [
            chunk(request(3) + request(1) + request(2)),
            chunk(response(1) + response(9) + response(3), from_client=False),
        ]
    )
    assert ids(list(exchanges)) == [(1, True, True), (3, True, True), (2, True, False), (9, False, True)]


def test_a_response_captured_before_its_request_is_paired_all_the_same() -> None:
    exchanges = list(pair_exchanges([chunk(response(4), from_client=False), chunk(request(4))]))
    assert ids(exchanges) == [(4, True, True)]


def test_an_id_used_again_leaves_the_older_request_alone() -> None:
    exchanges = list(pair_exchanges([chunk(request(4, b"old") + request(4, b"new"))]))
    assert ids(exchanges) == [(4, True, False), (4, True, False)]
    assert exchanges[0].request is not None
    assert exchanges[0].request.data.endswith(b"old")


def test_after_a_gap_frames_are_found_again_at_a_packet_that_starts_with_one() -> None:
    statuses: list[ConnectionStatus] = []
    lost = request(2, b"x" * 50)
    exchanges = list(
        pair_exchanges(
            [
                chunk(request(1) + lost[:20]),
                chunk(lost[40:], gap=20),
                chunk(request(3), packet=3),
                chunk(response(1), from_client=False),
                chunk(response(3)[5:], from_client=False, gap=5),
                chunk(response(3), from_client=False),
            ],
            statuses,
        )
    )
    assert ids(exchanges) == [(1, True, True), (3, True, True)]
    assert exchanges[1].request is not None
    assert exchanges[1].request.after_gap
    assert statuses[0].skipped_bytes == 20 + len(lost) - 40 + len(response(3)) - 5


def test_a_capture_that_starts_midway_finds_the_first_request() -> None:
    exchanges = list(pair_exchanges([chunk(b"tail of something", gap=-1), chunk(request(5)), chunk(request(6))]))
    assert ids(exchanges) == [(5, True, False), (6, True, False)]


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x00", b"GET "])
def test_an_impossible_length_drops_the_rest_of_its_packet(length: bytes) -> None:
    exchanges = list(pair_exchanges([chunk(request(1) + length + b"garbage" * 9), chunk(request(2))]))
    assert ids(exchanges) == [(1, True, False), (2, True, False)]


def test_a_tls_connection_is_opaque_and_gives_no_frames() -> None:
    statuses: list[ConnectionStatus] = []
    hello = b"\x16\x03\x01\x00\x80" + bytes(128)
    assert list(pair_exchanges([chunk(hello), chunk(hello, from_client=False)], statuses)) == []
    assert statuses == [ConnectionStatus(CONNECTION, 2 * len(hello), True)]


def test_a_large_frame_in_many_packets_is_whole() -> None:
    # Copying the buffer for every packet would be 130 GB here: the timeout of the suite would tell.
    content = Random(1).randbytes(1 << 24)
    large = request(1, content)
    chunks = [chunk(large[at : at + 1000]) for at in range(0, len(large), 1000)]
    (exchange,) = pair_exchanges(chunks)
    assert exchange.request is not None
    assert exchange.request.data == large[4:]


def test_random_bytes_never_crash_the_reader() -> None:
    chance = Random(3)
    for _ in range(300):
        chunks = [
            chunk(chance.randbytes(chance.randrange(1, 40)), chance.random() < 0.5, chance.choice((0, 0, 5)))
            for _ in range(20)
        ]
        for exchange in pair_exchanges(chunks):
            assert exchange.request or exchange.response


def test_the_controllers_capture_has_the_1726_frames_that_tshark_finds() -> None:
    exchanges = list(read_exchanges(CAPTURES / "controller-4.3.1.pcap", {19093}))
    frames = sum((e.request is not None) + (e.response is not None) for e in exchanges)
    counts = Counter(api_keys.name(e.api_key) for e in exchanges)
    assert frames == 1726
    assert counts == {
        "Fetch": 609,
        "BrokerHeartbeat": 163,
        "ApiVersions": 34,
        "Envelope": 26,
        "AssignReplicasToDirs": 10,
        "DescribeCluster": 7,
        "BrokerRegistration": 5,
        "AlterPartition": 5,
        "ControllerRegistration": 2,
        "AllocateProducerIds": 2,
        "CreateTopics": 2,
        "DescribeQuorum": 1,
    }
    assert {api_keys.name(e.api_key) for e in exchanges if e.response is None} == {"Fetch"}


def test_the_brokers_capture_has_its_frames_in_pairs() -> None:
    exchanges = list(read_exchanges(CAPTURES / "brokers-4.3.1.pcap", {19192, 19292}))
    assert sum((e.request is not None) + (e.response is not None) for e in exchanges) == 931
    assert sum(1 for e in exchanges if e.request is None) == 0
    assert sum(1 for e in exchanges if e.response is None) == 1
