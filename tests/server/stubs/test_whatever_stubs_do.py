"""Whatever stubs do, the node goes on and the journal misses nothing."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mockraft import Stub
from mockraft.kafka_api.effects import Close, Reset, Send
from mockraft.server.apis.registry import APIS
from mockraft.server.node import Node
from mockraft.server.stubs.actions import ACTIONS
from mockraft.server.stubs.errors import StubError
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.fetch_request import FetchRequest

from ..conftest import controller_in_memory

OF_THE_FUTURE = write_request(ApiVersionsRequest(), 4, 3, "test")
REQUESTS = (
    write_request(BrokerHeartbeatRequest(broker_id=1), 1, 1, "1"),
    write_request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4, 2, None),
    OF_THE_FUTURE[:6] + b"\0\x63" + OF_THE_FUTURE[8:],
    write_request(DescribeClusterRequest(), 1, 4, "test"),
    write_request(FetchRequest(), 17, 5, "raft-client-1"),
)
NAMES = [name for name in ACTIONS if name not in ("answer", "change")]
ACTION = st.sampled_from([{name: ACTIONS[name].example} for name in NAMES]) | st.sampled_from(
    [
        {"change": {"response": {"throttleTimeMs": 5}}},
        {"change": {"response": lambda response: 1 / 0}},
        {"change": {"request": lambda request: setattr(request, "broker_id", "x")}},
        {"answers": [lambda request: object(), "blackhole", {"throttleTimeMs": 3}]},
        {"answers": iter([])},
        {"answer": {"nothing": "of this API"}},
    ]
)
API = st.sampled_from(["BrokerHeartbeat", "ApiVersions", "DescribeCluster", "Fetch"]) | st.none()


@settings(max_examples=60)
@given(st.lists(st.tuples(API, st.lists(ACTION, max_size=3)), max_size=4), st.booleans(), st.data())
def test_no_stub_breaks_the_node_or_keeps_an_exchange_from_the_journal(
    stubs: list[tuple[str | None, list[Any]]], strict: bool, data: st.DataObject
) -> None:
    node = Node(controller_in_memory(now_ms=0), APIS)
    node.script.stubs.strict = strict
    for api, actions in stubs:
        try:
            made = Stub.from_json({"match": {"api": api} if api else {}, "actions": actions})
        except StubError:
            continue
        node.script.stubs.add(made)
    asked = data.draw(st.lists(st.sampled_from(REQUESTS), max_size=6))
    now_ms = 0
    gone = 0
    node.connected(1, "127.0.0.1:50000", now_ms)
    for frame in asked:
        effects = node.step(1 + gone, frame, now_ms)
        if any(isinstance(effect, Close | Reset) for effect in effects):
            gone += 1
            node.connected(1 + gone, "127.0.0.1:50000", now_ms)
    for _ in range(240):  # six requests, one after the other, of at most three delays of 600 ms each
        now_ms += 50
        effects = [*node.tick(now_ms), *node.sent(1 + gone, now_ms)]
        assert all(effect.data for effect in effects if isinstance(effect, Send))
    node.script.stubs.reset()
    for _ in range(10):
        now_ms += 50
        node.tick(now_ms)
        node.sent(1 + gone, now_ms)
    assert node.parked == 0
    noted = [each for each in node.journal.exchanges() if "until released" not in (each.reason or "")]
    lost = sum(bool(each.reason) for each in node.journal.closed()) and len(asked)
    assert len(noted) + lost >= len(asked)
    node.connected(999, "127.0.0.1:50000", now_ms)
    assert any(isinstance(effect, Send) for effect in node.step(999, REQUESTS[0], now_ms))
