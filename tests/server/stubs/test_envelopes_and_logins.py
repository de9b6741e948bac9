"""Stubs of requests that come inside others, or before anybody is logged in."""

from typing import Any

import pytest
from mockraft import stub
from mockraft.server.apis.registry import APIS
from mockraft.server.effects import Close, Send
from mockraft.wire import error_codes
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.create_topics_response import CreateTopicsResponse
from mockraft.wire.messages.envelope_request import EnvelopeRequest

ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"


@pytest.fixture
def rig(make_rig: Any, make_controller: Any) -> Any:
    return make_rig(*APIS.values(), controller=make_controller())


@pytest.fixture
def stubs(rig: Any) -> Any:
    return rig.node.script.stubs


def forward(rig: Any, connection: int, name: str = "t") -> None:
    """A broker (its client id says it is broker 1) forwards somebody's CreateTopics."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    carried = write_request(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, 77, "admin")[4:]
    envelope = EnvelopeRequest(request_data=carried, request_principal=ANONYMOUS, client_host_address=b"\x7f\0\0\1")
    rig.send(connection, rig.frame(envelope, 0, client_id="1"))


def answered(rig: Any) -> tuple[int, Any]:
    """The envelope's error code, and the response that it carries."""
    (data,) = [effect.data for effect in rig.effects if isinstance(effect, Send)]
    (frame,) = FrameReader().receive_data(data)
    envelope = read_response(frame, 58, 0)
    inner = envelope.response_data
    return envelope.error_code, None if inner is None else CreateTopicsResponse.read(inner[5:], 7)


def test_a_forwarded_request_is_met_by_its_own_api_and_its_brokers_id(rig: Any, stubs: Any) -> None:
    live = stubs.add(stub("CreateTopics", broker_id=1, client_id="admin").inject_error("POLICY_VIOLATION", "no"))
    forward(rig, rig.connect())
    code, response = answered(rig)
    (topic,) = response.topics
    assert (code, topic.error_code, topic.error_message) == (0, error_codes.POLICY_VIOLATION, "no")
    (exchange,) = rig.node.journal.exchanges()
    assert (exchange.api, exchange.served_by, exchange.matched) == ("Envelope", f"stub {live.id}", live.id)
    assert list(live.calls) == [exchange]


def test_not_controller_of_a_forwarded_request_is_lifted_as_the_controllers_own_is(rig: Any, stubs: Any) -> None:
    stubs.add(stub("CreateTopics").inject_error("NOT_CONTROLLER"))
    forward(rig, rig.connect())
    assert answered(rig) == (error_codes.NOT_CONTROLLER, None)


def test_delayed_forwarded_request_may_be_dropped(rig: Any, stubs: Any) -> None:
    live = stubs.add(stub("CreateTopics").delay_on(100).drop())
    forward(rig, rig.connect())
    rig.tick(rig.now_ms + 100)
    assert rig.sends() == []
    (exchange,) = rig.node.journal.exchanges()
    assert (exchange.failure, exchange.reason) == (None, f"dropped (stub {live.id})")


def test_a_forwarded_request_is_delayed_changed_and_dropped(rig: Any, stubs: Any) -> None:
    live = stubs.add(stub("CreateTopics").delay_on(100).change(response={"throttleTimeMs": 9}))
    connection = rig.connect()
    forward(rig, connection)
    assert rig.sends() == []
    rig.tick(rig.now_ms + 100)
    assert answered(rig)[1].throttle_time_ms == 9
    stubs.replace(live.id, stub("CreateTopics").drop())
    forward(rig, connection)
    assert rig.sends() == []
    assert rig.node.journal.exchanges()[-1].reason == f"dropped (stub {live.id})"
    stubs.replace(live.id, stub("CreateTopics").disconnect_on())
    forward(rig, connection)
    assert [type(effect) for effect in rig.effects] == [Close]


def test_an_envelope_itself_can_be_met(rig: Any, stubs: Any) -> None:
    stubs.add(stub("Envelope", broker_id=1).inject_error("NOT_CONTROLLER"))
    forward(rig, rig.connect())
    assert answered(rig) == (error_codes.NOT_CONTROLLER, None)


def test_a_forwarded_request_of_a_strict_script_is_unmatched_unless_either_part_is_met(rig: Any, stubs: Any) -> None:
    stubs.strict = True
    connection = rig.connect()
    forward(rig, connection, "a")
    stubs.add(stub("CreateTopics", topics__name="b"))
    forward(rig, connection, "b")
    assert [each.unmatched for each in rig.node.journal.exchanges()] == [True, False]
