"""One script for several nodes."""

from typing import Any

from mockraft import stub
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.node import Node
from mockraft.server.stubs.script import Script
from mockraft.wire.connection import write_request
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest


def test_one_rack_serves_every_node_and_a_node_is_a_scope(make_controller: Any) -> None:
    script = Script()
    nodes = [Node(make_controller(ControllerConfig(node_id=each)), APIS, script=script) for each in (3000, 3001)]
    one = script.stubs.add(stub("BrokerHeartbeat", node=3001).named("", id="one").inject_error("NOT_CONTROLLER"))
    script.stubs.add(stub("BrokerHeartbeat").named("", id="both").with_priority(-1))
    for node in nodes:
        node.connected(1, "127.0.0.1:50000", 0)
        node.step(1, write_request(BrokerHeartbeatRequest(broker_id=1), 1, 1, "test"), 0)
    assert [each.matched for node in nodes for each in node.journal.exchanges()] == ["both", "one"]
    assert [each.node_id for each in one.calls] == [3001]
