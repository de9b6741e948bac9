"""One client's requests delay no other's for long, and take bounded memory, whatever they are filled with."""

import contextlib
import itertools
import struct
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import psutil
import pytest
from mockraft.brokers.apis.registry import APIS as BROKER_APIS
from mockraft.kafka.child_process import free_port
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka_api.api import Parked
from mockraft.kafka_api.effects import NEW, AwaitSent, PauseReading, Share
from mockraft.kafka_api.listener import BURST_BYTES_MAX, BURST_REQUESTS_MAX, DEAR_US, RETRIES_US
from mockraft.kafka_api.turns import UNREAD_BYTES_MAX, Turns
from mockraft.kafka_configs import config_responses
from mockraft.server.admin.app import create_app
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.double import Double
from mockraft.server.stubs.script import Script
from mockraft.wire import api_keys
from mockraft.wire.connection import (
    HEADER_TAGS_MAX,
    OUTER_SHARE,
    TooManyElementsError,
    parse_request,
    read_request_body,
    write_request,
)
from mockraft.wire.errors import WireError
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.messages.vote_request import VoteRequest

from tools.blocking_connection import BlockingConnection
from tools.hostile.smallest_elements import Filling, fillings
from tools.hostile.under_attack import TIMEOUT_S, Attack, GoodBroker, at_once, never_reads, peak_memory, sends_and_reads

from ..budgets import budget, soak
from ..conftest import registration_request
from ..rows import each_row
from ..waiting import until
from .conftest import OFFERED, allocation_api

FILLINGS = [
    filling
    for api in OFFERED.values()
    for version in sorted({api.min_version, api.max_version})
    for filling in fillings(api_keys.name(api.api_key), version)
]
ELEMENTS = 200
MANY = budget(40, 200)
"""Connections that send a request at once."""
WAIT_MS_MAX = 2_000
"""Of the controller's CPU while a heartbeat waits; benchmarks/fairness.py measures latencies, on a quiet machine."""
MEMORY_MIB_MAX = 400
LARGEST_MEMORY_MIB_MAX = 2_048
FRAME_BYTES = 8 << 20
ATTACKS = budget(
    ("CreateTopics v7 topics, distinct names", "AssignReplicasToDirs v0 directories.topics"),
    tuple(each.name for each in FILLINGS),
)


def body_of(filling: Filling, elements: int, elements_max: int) -> Any:
    request = parse_request(filling.frame(1 << 20, elements)[4:])
    return read_request_body(request, APIS[request.api_key].request, elements_max)


@each_row("filling", FILLINGS)
def test_every_array_counts(filling: Filling) -> None:
    # A nested array has INNER elements in each outer one, and so fewer altogether than allowed.
    elements = ELEMENTS * (20 if filling.is_nested else 1)
    # A tagged array takes one for its tag.
    assert body_of(filling, elements, OUTER_SHARE * (elements + 1))
    # Structs in elements of outer arrays have a share of the limit.
    share = f"{elements // 2 // OUTER_SHARE} structs in the arrays of those"
    about = f"client 'attacker' has more than ({elements // 2} elements|{share})"
    with pytest.raises(TooManyElementsError, match=about):
        body_of(filling, elements, elements // 2)


def test_the_limit_is_exact_and_a_request_at_it_is_read() -> None:
    assignments = [CreatableReplicaAssignment(partition_index=n, broker_ids=[1, 2, 3]) for n in range(100)]
    topic = CreatableTopic(name="a", num_partitions=-1, replication_factor=-1, assignments=assignments)
    request = parse_request(write_request(CreateTopicsRequest(topics=[topic]), 7, 1, "c")[4:])
    assert read_request_body(request, CreateTopicsRequest, 401).topics == [topic]
    with pytest.raises(TooManyElementsError, match="request_elements_max=400"):
        read_request_body(request, CreateTopicsRequest, 400)


def test_outer_arrays_have_a_share_of_the_limit() -> None:
    message = DeleteTopicsRequest(topic_names=["a"] * 101)
    request = parse_request(write_request(message, 1, 1, "c")[4:])
    assert read_request_body(request, DeleteTopicsRequest, OUTER_SHARE * 101) == message
    with pytest.raises(TooManyElementsError, match="more than 100 elements in its outer arrays"):
        read_request_body(request, DeleteTopicsRequest, OUTER_SHARE * 100)


def test_a_request_header_with_many_tagged_fields_is_refused() -> None:
    tags = b"\x7b\0" * (HEADER_TAGS_MAX + 1)
    with pytest.raises(WireError, match="more than 1000 elements"):
        parse_request(struct.pack(">hhih", 18, 3, 1, 1) + b"c" + b"\xe9\x07" + tags)


def test_over_the_limit_the_connection_is_closed_with_client_api_number_and_option(rig: Any) -> None:
    connection = rig.connect()
    filling = next(each for each in FILLINGS if each.name == "CreateTopics v7 topics")
    rig.send(connection, filling.frame(1 << 20))
    rig.effects = rig.node.sent(connection, rig.now_ms)
    (close,) = rig.closes()
    reason = "CreateTopicsRequest of client 'attacker' has more than 65536 elements, request_elements_max=65536"
    assert close.reason == f"refused: {reason}"
    assert rig.node.journal.counters()["closed"] == {"request_elements_max": 1}


def test_a_forwarded_request_over_the_limit_is_answered_as_one_that_cannot_be_read(rig: Any) -> None:
    filling = next(each for each in FILLINGS if each.name == "CreateTopics v7 topics")
    principal = b"\0\0" + b"\5User\2x\0\0"
    envelope = EnvelopeRequest(
        request_data=filling.frame(1 << 20)[4:], request_principal=principal, client_host_address=bytes(4)
    )
    connection = rig.connect()
    rig.send(connection, rig.frame(envelope, 0))
    assert rig.effects == [AwaitSent(connection), PauseReading(connection)]
    rig.effects = rig.node.sent(connection, rig.now_ms)
    assert rig.closes() == []
    assert rig.node.journal.exchanges()[-1].response.error_code == 35


def test_alter_partition_of_65_000_partitions_is_read_by_default() -> None:
    isr = [BrokerState(broker_id=each, broker_epoch=7) for each in (1, 2, 3)]
    partitions = [PartitionData(partition_index=n, new_isr_with_epochs=isr) for n in range(65_000)]
    message = AlterPartitionRequest(topics=[TopicData(topic_id=bytes(16), partitions=partitions)])
    request = parse_request(write_request(message, 3, 1, "b")[4:])
    limit = APIS[message.api_key].elements_max(ControllerConfig())
    assert len(read_request_body(request, AlterPartitionRequest, limit).topics[0].partitions) == 65_000


def test_a_long_request_waits_for_its_turn_and_a_short_one_does_not(rig: Any) -> None:
    first, second = rig.connect(), rig.connect()
    long = ApiVersionsRequest(client_software_name="x" * BURST_BYTES_MAX, client_software_version="1")
    rig.send(first, rig.frame(long, 3))
    assert rig.effects == [AwaitSent(first), PauseReading(first)]
    rig.send(second, rig.frame(BrokerHeartbeatRequest(), 1))
    assert len(rig.sends(second)) == 1
    rig.effects = rig.node.sent(first, rig.now_ms)
    assert len(rig.sends(first)) == 1
    assert rig.node.received_bytes == 0


def test_requests_that_wait_count_as_received_bytes(make_rig: Any) -> None:
    rig = make_rig(received_bytes_max=2 * BURST_BYTES_MAX)
    first, second = rig.connect(), rig.connect()
    frame = rig.frame(ApiVersionsRequest(client_software_name="x" * BURST_BYTES_MAX, client_software_version="1"), 3)
    rig.send(first, frame)
    rig.send(second, frame)
    assert [close.connection_id for close in rig.closes()] == [first]
    assert rig.node.received_bytes == len(frame)


class Loop:
    """The timers of an event loop, and a clock that answers move."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.timers: list[Any] = []
        self.order: list[str] = []

    def call_later(self, delay: float, call: Any) -> None:
        self.timers.append(call)

    def waiting(self, name: str, took_ms: int) -> Any:
        def take_turn() -> None:
            self.now_ns += 1_000_000 * took_ms
            self.order.append(name)

        return SimpleNamespace(take_turn=take_turn)

    def iterate(self) -> list[str]:
        """Run an iteration; return the turns in it."""
        before = len(self.order)
        timers, self.timers = self.timers, []
        for each in timers:
            each()
        return self.order[before:]


def test_apis_clients_and_connections_take_turns() -> None:
    loop = Loop()
    turns = Turns(cast(Any, loop), lambda: loop.now_ns)
    for name in ("a1", "a2", "a3", "b1"):
        turns.add(loop.waiting(name, 300), Share(True, "configs", name[0]))
    turns.add(loop.waiting("c1", 100), Share(True, "groups", "c"))
    for number in range(7):
        turns.add(loop.waiting(f"s{number}", 1), Share(False, "versions", "a"))
    # Short requests while there is time, thrice, then one dear, of the API that had least time, of each client in turn.
    assert [loop.iterate() for _ in range(4)] == [["s0", "s1", "s2", "s3", "s4"], ["s5", "s6"], [], ["a1"]]
    assert [loop.iterate() for _ in range(4)] == [[], [], [], ["c1"]]
    turns.add(loop.waiting("beat", 1), Share(False, "heartbeats", "a"))
    assert [loop.iterate() for _ in range(12)] == [["beat"], [], [], ["b1"], [], [], [], ["a2"], [], [], [], ["a3"]]
    assert loop.timers == []


def test_what_is_read_late_or_beside_a_dear_request_waits() -> None:
    loop = Loop()
    turns = Turns(cast(Any, loop), lambda: loop.now_ns)
    turns.begin()
    loop.now_ns += 4_000_000
    turns.begin()
    assert not turns.is_late
    loop.now_ns += 2_000_000
    assert turns.is_late
    turns.end()
    turns.add(loop.waiting("dear", 300), NEW)
    assert [loop.iterate() for _ in range(3)] == [[], [], []]
    turns.begin()
    assert turns.is_late
    turns.end()
    assert loop.iterate() == ["dear"]
    turns.begin()
    assert not turns.is_late


def test_the_client_with_most_unread_bytes_is_closed_when_all_have_too_many() -> None:
    turns = Turns(cast(Any, Loop()))
    closed: list[str] = []

    def unread(name: str, size: int) -> Any:
        return Mock(unread_bytes=size, give_up=lambda kind, reason: closed.append(f"{name} {kind} {reason}"))

    half = UNREAD_BYTES_MAX // 2
    read, most = unread("read", 0), unread("most", half + 1)
    turns.keep_unread(read, half)  # and has read since
    turns.keep_unread(most, half + 1)
    assert closed == []
    turns.keep_unread(unread("least", half), half)
    about = f"all clients left {2 * half + 1} bytes unread, this one {half + 1}"
    assert closed == [f"most write_bytes_max {about}"]
    turns.keep_unread(most, 0)
    turns.keep_unread(unread("other", half), half)
    assert len(closed) == 1


def test_an_api_is_dear_while_its_answers_take_long(make_rig: Any) -> None:
    took_us = [0]

    def handle(request: Any, ctx: Any, controller: Any) -> Any:
        rig.us += took_us[0]
        return AllocateProducerIdsResponse()

    rig = make_rig(allocation_api(handle))
    rig.us = 0
    rig.node.now_us = lambda: rig.us
    first, second = rig.connect(), rig.connect()
    frame = rig.frame(AllocateProducerIdsRequest(), 0)
    took_us[0] = 10 * DEAR_US
    rig.send(rig.connect(), rig.frame(AllocateProducerIdsRequest(), 0, "x" * BURST_BYTES_MAX))
    assert not rig.node._dear, "long requests are dear anyhow, and short ones of their API are not for that"
    rig.send(first, frame * 2)
    assert len(rig.sends(first)) == 1, "the time of its answers ends a burst"
    took_us[0] = 1
    shares = []
    for _ in range(10):
        rig.send(second, frame)
        shares += [effect.share.is_dear for effect in rig.effects if isinstance(effect, AwaitSent)]
        rig.node.sent(second, rig.now_ms)
    assert shares == [True] * 9, "answers become cheaper"


def test_parked_requests_are_retried_in_slices(make_rig: Any) -> None:
    def handle(request: Any, ctx: Any, controller: Any) -> Any:
        def retry(now_ms: int, expired: bool) -> Any:
            rig.us += RETRIES_US + 1
            return AllocateProducerIdsResponse() if position else None

        return Parked(rig.now_ms + 60_000, retry) if request.broker_id else AllocateProducerIdsResponse()

    rig = make_rig(allocation_api(handle))
    rig.us, position = 0, 0
    rig.node.now_us, rig.node.position = lambda: rig.us, lambda: position
    parked = [rig.connect() for _ in range(3)]
    for each in parked:
        rig.send(each, rig.frame(AllocateProducerIdsRequest(broker_id=1), 0))
    position = 1
    other = rig.connect()
    rig.send(other, rig.frame(AllocateProducerIdsRequest(broker_id=0), 0))
    answered = [len(rig.sends(each)) for each in (*parked, other)]
    while rig.node.next_tick_ms(rig.now_ms) <= rig.now_ms:
        rig.effects = rig.node.tick(rig.now_ms)
        answered += [len(rig.sends(each)) for each in parked]
    assert answered == [1, 1, 0, 1, 0, 0, 1], "one while it is answered, one after it, one in the tick"


def test_the_share_of_a_late_request_is_its_api_and_client(rig: Any) -> None:
    connection = rig.connect()
    rig.controller.image.cluster.brokers[1] = SimpleNamespace(broker_epoch=7)
    anyone = ("User:ANONYMOUS", "127.0.0.1")
    for message, client_id, share in (
        (BrokerHeartbeatRequest(broker_id=1, broker_epoch=7), "a", Share(False, ("nodes", 63), (1, 7))),
        (BrokerHeartbeatRequest(broker_id=1, broker_epoch=8), "1", Share(True, 63, anyone)),
        (VoteRequest(), "raft-client-3000", Share(False, ("nodes", 52), 3000)),
        (VoteRequest(), "raft-client-2", Share(True, 52, anyone)),
        (ApiVersionsRequest(), "1", Share(False, ("nodes", 18), 1)),
        (DescribeConfigsRequest(), "raft-client-3000", Share(True, 32, anyone)),
        (ApiVersionsRequest(client_software_name="x" * BURST_BYTES_MAX), "1", Share(True, 18, anyone)),
    ):
        frame = write_request(message, message.max_version, 1, client_id)
        waits, _ = rig.node.step(connection, frame, rig.now_ms, True)
        assert waits.share == share
        assert rig.node.sent(connection, rig.now_ms)
    frame = struct.pack(">ihh", 4, 32_000, 0)
    waits, _ = rig.node.step(connection, frame, rig.now_ms, True)
    assert waits.share == Share(True, None, anyone), "APIs that are not served have one share"


async def test_a_connection_is_queued_once_however_often_its_socket_is_full(make_controller: Any) -> None:
    from .test_tcp import connected, listening

    async with listening(make_controller()) as (listener, port):
        client = await connected(port)
        await until(lambda: listener.connections())
        (connection,) = listener.connections()
        queued: list[Any] = []
        listener.turns.add = lambda connection, share: queued.append(connection)  # type: ignore[method-assign]
        connection.await_sent(NEW)
        connection.pause_writing()
        connection.resume_writing()
        assert queued == [connection]
        connection.take_turn()
        connection.await_sent(NEW)
        assert queued == [connection, connection]
        client.close()


def test_what_follows_a_bad_length_is_dropped(rig: Any) -> None:
    connection = rig.connect()
    rig.node._connections[connection].reader.failure = WireError("a frame of negative length -1")
    rig.send(connection, bytes(1_000))
    assert (rig.effects, rig.node.received_bytes) == ([], 0)


def test_the_bytes_of_a_refused_frame_are_not_kept(rig: Any) -> None:
    good = rig.frame(ApiVersionsRequest(), 0)
    for before in (b"", good * (BURST_REQUESTS_MAX - 1) + good):
        connection = rig.connect()
        reader = rig.node._connections[connection].reader
        rig.send(connection, before + struct.pack(">i", -1) + bytes(1_000))
        rig.effects = rig.node.sent(connection, rig.now_ms)
        assert isinstance(reader.failure, WireError)
        assert reader.failure.__traceback__ is None, "its frames have the bytes"


def test_a_resource_named_often_is_refused_beyond_the_limit(make_rig: Any, make_controller: Any) -> None:
    controller = make_controller(ControllerConfig(request_elements_max=200))
    rig = make_rig(*APIS.values(), controller=controller)
    resource = DescribeConfigsResource(resource_type=4, resource_name="3000", configuration_keys=None)
    answered = rig.ask(rig.connect(), DescribeConfigsRequest(resources=[resource] * 50), 4)
    good = [each for each in answered.results if each.error_code == 0]
    assert 0 < sum(len(each.configs) for each in good) <= 800
    assert {each.error_code for each in answered.results[len(good) :]} == {44}
    assert "request_elements_max" in answered.results[-1].error_message


@each_row("version", range(1, 5))
def test_shared_configs_are_encoded_as_each_alone(version: int) -> None:
    synonym = DescribeConfigsSynonym(name="s", value=None)
    configs = [
        DescribeConfigsResourceResult(name=f"n{n}", value="v" * n, synonyms=[synonym] * (n % 3)) for n in range(150)
    ]
    few = configs[:3]
    results = [
        DescribeConfigsResult(
            error_code=n % 3,
            error_message=None if n % 2 else "x" * n,
            resource_type=2,
            resource_name="y" * 3 * n,
            configs=(configs, few, [])[n % 3],
        )
        for n in range(config_responses.SHARED_MIN + 1)
    ]
    expected = DescribeConfigsResponse(results=results).write(version)
    assert config_responses.response(results).write(version) == expected


@pytest.fixture(scope="module")
def controller_process(tmp_path_factory: pytest.TempPathFactory) -> Any:
    process = MockraftController(tmp_path_factory.mktemp("fair"), "AAAAAAAAAAAAAAAAAAAAAQ", keep_data=False)
    process.start()
    process.wait_until_running()
    yield process
    process.kill()


BROKER_IDS = itertools.count(2)


@pytest.mark.parametrize("name", ATTACKS)
def test_heartbeats_go_on_and_memory_is_bounded_under_attack(controller_process: MockraftController, name: str) -> None:
    filling = next(each for each in FILLINGS if each.name == name)
    limit = APIS[parse_request(filling.frame(100)[4:]).api_key].elements_max(ControllerConfig())
    # One just within the limit, which is answered, and one far above, which is refused.
    frames = [filling.frame(FRAME_BYTES, limit), filling.frame(FRAME_BYTES)]
    check_attack(controller_process, frames, MEMORY_MIB_MAX)


def short_and_dear(apis: Mapping[int, Any]) -> dict[str, list[bytes]]:
    """Return requests of each API that are answered without a turn if they are cheap, filled with what costs most."""
    frames: dict[str, list[bytes]] = {}
    for api in apis.values():
        name = api_keys.name(api.api_key)
        filled = [each.frame(BURST_BYTES_MAX - 64) for each in fillings(name, api.max_version)]
        frames[name] = [write_request(api.request(), api.max_version, 1, "a"), *filled]
    resource = DescribeConfigsResource(resource_type=4, resource_name="3000", configuration_keys=None)
    dear = DescribeConfigsRequest(resources=[resource] * budget(4, 33), include_synonyms=True)
    frames["DescribeConfigs"] = [write_request(dear, 4, 1, "a")]
    return frames


def reads_over_http() -> dict[str, list[bytes]]:
    """Return the reads of the HTTP API that need no parameters."""
    paths = create_app(Double(dict, Script())).openapi()["paths"]
    found = [path for path, operations in paths.items() if "get" in operations and "{" not in path]
    request = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    return {path: [request.format(path).encode()] for path in found if not path.endswith("/stream")}


MANY_AT_ONCE = {"controller": short_and_dear(OFFERED), "broker": short_and_dear(BROKER_APIS), "HTTP": reads_over_http()}
"""By server and API, requests that each of many connections sends at once."""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A process with a controller, a broker and the HTTP API, and the address of each."""
    broker_port, admin_port = free_port(), free_port()
    options = ["--brokers", "1", "--brokers-port", str(broker_port), "--admin-port", str(admin_port)]
    folder = tmp_path_factory.mktemp("whole")
    process = MockraftController(folder, "AAAAAAAAAAAAAAAAAAAAAQ", options=options, keep_data=False)
    process.start()
    process.wait_until_running()
    assert process.wait_for_log("serves clients", 20)
    ports = {"controller": process.port, "broker": broker_port, "HTTP": admin_port}
    yield process, {server: (process.host, port) for server, port in ports.items()}
    process.kill()


@pytest.mark.parametrize("server", MANY_AT_ONCE)
def test_heartbeats_go_on_while_many_connections_send_dear_requests_at_once(addresses: Any, server: str) -> None:
    process, address_of = addresses
    chosen = {"controller": ["DescribeConfigs"], "broker": ["Metadata"], "HTTP": ["/v1/state"]}[server]
    for name in budget(chosen, sorted(MANY_AT_ONCE[server])):
        frames = MANY_AT_ONCE[server][name]
        clients = at_once(MANY // len(frames))
        check_attack(process, frames, MEMORY_MIB_MAX, client=clients, rounds=1, attacked=address_of[server])


def test_heartbeats_go_on_while_forty_clients_pipeline_and_never_read(controller_process: MockraftController) -> None:
    pipelined = write_request(ApiVersionsRequest(), 0, 1, "attacker") * 1_000
    check_attack(controller_process, [pipelined] * 40, MEMORY_MIB_MAX, client=never_reads, beats=100)


@soak
def test_heartbeats_go_on_beside_requests_of_100_mb(controller_process: MockraftController) -> None:
    for filling in FILLINGS:
        if filling.name in ("ApiVersions v5 unknown tagged fields", "AssignReplicasToDirs v0 directories.topics"):
            check_attack(controller_process, [filling.frame(100_000_000)], LARGEST_MEMORY_MIB_MAX)


@pytest.fixture(scope="module")
def sasl_process(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("sasl")
    (folder / "users").write_text("admin=pw\n")
    options = ["--security-protocol", "SASL_PLAINTEXT", "--sasl-enabled-mechanisms", "PLAIN"]
    options += ["--plain-users-file", str(folder / "users")]
    process = MockraftController(folder, "AAAAAAAAAAAAAAAAAAAAAQ", options=options, keep_data=False)
    process.start()
    process.wait_until_running()
    yield process
    process.kill()


def log_in(connection: BlockingConnection) -> None:
    assert connection.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    assert connection.exchange(SaslAuthenticateRequest(auth_bytes=b"\0admin\0pw"), 2).error_code == 0


def logs_in_and_sends(address: tuple[str, int], frame: bytes, stopped: threading.Event) -> None:
    with contextlib.suppress(OSError):
        connection = BlockingConnection(address, "attacker", TIMEOUT_S)
        try:
            log_in(connection)
            connection.socket.sendall(frame)
            connection.receive_frame()
        finally:
            connection.close()


@pytest.mark.parametrize("client", [sends_and_reads, logs_in_and_sends], ids=["before login", "after login"])
def test_heartbeats_go_on_beside_clients_of_a_listener_with_sasl(sasl_process: MockraftController, client: Any) -> None:
    chosen = [each for each in FILLINGS if each.name in ATTACKS]
    limit = ControllerConfig().request_elements_max
    for each in chosen:
        frames = [each.frame(FRAME_BYTES, limit), each.frame(FRAME_BYTES)]
        check_attack(sasl_process, frames, MEMORY_MIB_MAX, client=client, beats=3, log_in=log_in)


def check_attack(
    process: MockraftController,
    frames: list[bytes],
    memory_mib_max: int,
    client: Any = sends_and_reads,
    beats: int = 3,
    log_in: Any = lambda _: None,
    rounds: int = 3,
    attacked: tuple[str, int] | None = None,
) -> None:
    """Compare a broker's heartbeats and the controller's memory with their bounds, over some rounds of the clients."""
    address = process.host, process.port
    broker = GoodBroker(address, registration_request(process.cluster_id, next(BROKER_IDS)), log_in)
    peak_mib, taken = peak_memory(process.pid), psutil.Process(process.pid)
    with Attack(attacked or address, frames, client) as attack:
        sent = itertools.count()
        waits = broker.beat_until(
            lambda: next(sent) >= beats and (client is never_reads or attack.rounds >= rounds),
            clock=lambda: sum(taken.cpu_times()[:2]),
        )
    broker.close()
    assert waits.max_ms < WAIT_MS_MAX
    assert waits.fenced == 0
    assert peak_mib() < memory_mib_max


def test_the_log_names_client_api_number_and_option(controller_process: MockraftController) -> None:
    filling = next(each for each in FILLINGS if each.name == "ElectLeaders v2 topicPartitions.partitions")
    with Attack((controller_process.host, controller_process.port), [filling.frame(1 << 20)]) as attack:
        while attack.rounds < 1:
            pass
    # Of this API, or of another one in the minute before.
    reason = r"Request of client 'attacker' has more than \d+ elements.* request_elements_max=65536"
    assert controller_process.wait_for_log(reason, 10)
