from typing import Any

from mockraft.kafka_api.api import Client
from mockraft.kafka_api.journal import Answer, Exchange, first_error
from mockraft.wire.connection import Request, write_response
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData

from .conftest import heartbeat


def test_an_exchange_is_decoded_when_looked_at() -> None:
    exchange = heartbeat(broker_id=3)
    assert exchange.request == BrokerHeartbeatRequest(broker_id=3)
    assert exchange.response == BrokerHeartbeatResponse(is_caught_up=True)


def test_an_api_versions_exchange_of_an_unknown_version_is_decoded() -> None:
    answer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = b"\x00\x12\x00\x63\x00\x00\x00\x01\xff\xff\x00strange"
    sent = Answer(write_response(answer.write(0), 1, 0), 0, "controller")
    exchange = Exchange(Client(1, "", "CONTROLLER"), Request(18, 99, 1, None, frame, 10), sent, 0, 0)
    assert exchange.request == ApiVersionsRequest()
    assert exchange.response == answer
    assert exchange.to_json()["apiVersion"] == 99


def test_exchange_without_an_answer_has_a_reason() -> None:
    exchange = heartbeat(reason="dropped", matched="slow-1")
    assert exchange.response is None
    assert exchange.error_code is None
    tree = exchange.to_json()
    assert (tree["response"], tree["responseHex"], tree["reason"]) == (None, None, "dropped")
    assert (tree["matched"], tree["brokerId"], tree["unmatched"]) == ("slow-1", 1, False)


def test_an_answer_that_was_spoilt_is_shown_as_bytes() -> None:
    exchange = heartbeat()
    exchange.answer = exchange.answer._replace(frame=exchange.response_frame[:-3])
    assert exchange.error_code is None
    tree = exchange.to_json()
    assert (tree["response"], tree["responseHex"]) == (None, exchange.response_frame.hex())


def test_a_summary_names_the_error_and_has_no_bodies() -> None:
    summary: dict[str, Any] = heartbeat(error_code=77).summary()
    assert (summary["error"], summary["bytes"] > 30, summary["failure"]) == ("STALE_BROKER_EPOCH", True, None)
    assert "request" not in summary
    assert heartbeat().summary()["error"] is None


def test_finds_the_first_error_however_deep() -> None:
    deep = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(), PartitionData(error_code=74)])])
    assert first_error(deep) == 74
    assert first_error(BrokerHeartbeatResponse(error_code=77)) == 77
    assert first_error(BrokerHeartbeatResponse()) == 0
    large = deep.responses[0].partitions[0]
    large.records = bytes(1000)
    sent = Answer(write_response(deep.write(12), 7, 1), 12, "controller")
    exchange = Exchange(Client(5, "", "CONTROLLER"), Request(1, 12, 7, "1", b"", 0), sent, 0, 0)
    assert exchange.error_code == 74
