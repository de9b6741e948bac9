"""A controller that answers a live broker from a capture."""

import asyncio
from typing import Any

import pytest
from mockraft import SimulatedBroker
from mockraft.brokers.lifecycle import BrokerState
from mockraft.spark_replay.regression.capture_controller import CaptureController
from mockraft.spark_replay.regression.captured import Captured, read_frame
from mockraft.spark_replay.regression.captured_answers import CapturedAnswers
from mockraft.wire import api_keys, error_codes, uuids
from mockraft.wire.client import DisconnectedError, connect
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersionsResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest

LATEST = ApiVersionsRequest.max_version


def answers_of(exchanges: list[Captured]) -> CapturedAnswers:
    return CapturedAnswers(exchanges, "127.0.0.1", 0)


async def test_broker_with_other_ids_starts_and_stops_on_captured_responses(exchanges: list[Captured]) -> None:
    result: list[str] = []
    async with CaptureController(answers_of(exchanges), on_event=result.append) as controller:
        cluster_id = uuids.text_of(bytes(range(16)))
        broker = SimulatedBroker.joining(controller.bootstrap, cluster_id, 1, seed=99, serve_clients=False)
        async with broker:
            await broker.wait_until(BrokerState.RUNNING)
        answers = controller.answers
    assert answers.answered["BrokerRegistration"] == 1
    assert answers.answered["BrokerHeartbeat"] > 2
    assert answers.answered["Fetch"] > 2
    assert result == []


async def test_responses_to_same_request_come_in_order_and_last_one_repeats(
    exchanges: list[Captured],
) -> None:
    asked = [each for each in exchanges if each.api_key == api_keys.BROKER_HEARTBEAT]
    answers = answers_of(exchanges)
    given = [answers.answer(each.request or b"") for each in asked]
    for each, answer in zip(asked, given, strict=True):
        assert answer is not None
        # Byte for byte: nothing in it is the other side's.
        assert answer.frame[4:] == each.response
        assert answer.number == each.number
    again = answers.answer(asked[-1].request or b"")
    assert again is not None
    assert again.number == asked[-1].number


async def test_reports_request_without_captured_response_and_closes_connection(exchanges: list[Captured]) -> None:
    result: list[str] = []
    async with CaptureController(answers_of(exchanges), on_event=result.append) as controller:
        host, port = controller.answers.address
        client = await connect(host, port)
        with pytest.raises(DisconnectedError):
            await client.send(ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None), version=0)
        await client.close()
    assert result == ["no captured response to ListPartitionReassignments version 0"]
    assert controller.answers.unanswered == {("ListPartitionReassignments", "the capture has no such request"): 1}


@pytest.mark.parametrize("version", [LATEST + 1, 99, -1])
def test_unknown_version_of_api_versions_is_refused_in_version_0(exchanges: list[Captured], version: int) -> None:
    captured = next(each for each in exchanges if each.api_key == api_keys.API_VERSIONS)
    answers = answers_of([captured])
    request = write_request(ApiVersionsRequest(), max(0, min(version, LATEST)), 7, "newer")[4:]
    answer = answers.answer(request[:2] + version.to_bytes(2, signed=True) + request[4:])
    assert answer is not None
    assert answer.frame[4:8] == (7).to_bytes(4)
    response = ApiVersionsResponse.read(answer.frame[8:], 0)
    assert response.error_code == error_codes.UNSUPPORTED_VERSION
    assert [(each.api_key, each.min_version, each.max_version) for each in response.api_keys] == [(18, 0, LATEST)]


async def test_responses_name_the_serving_address(exchanges: list[Captured]) -> None:
    async with CaptureController(answers_of(exchanges)) as controller:
        fetches = [each for each in exchanges if each.api_key == api_keys.FETCH and each.response]
        answer = controller.answers.answer(fetches[0].request or b"")
        assert answer is not None
        response: Any = read_frame(answer.frame[4:], api_keys.FETCH, fetches[0].api_version)
        assert {(each.host, each.port) for each in response.node_endpoints} == {controller.answers.address}


async def test_invalid_request_closes_its_connection(exchanges: list[Captured]) -> None:
    result: list[str] = []
    async with CaptureController(answers_of(exchanges), on_event=result.append) as controller:
        for bad in (
            b"\xff\xff\xff\xff",
            b"\0\0\0\x04\x7f\xff\0\0",
            write_request(BrokerHeartbeatRequest(), 0, 1, None)[:-3],
        ):
            reader, writer = await asyncio.open_connection(*controller.answers.address)
            writer.write(bad)
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
    assert len(result) == 2


def test_same_request_of_another_client_gets_same_response(exchanges: list[Captured]) -> None:
    answers = answers_of(exchanges)
    request = write_request(DescribeClusterRequest(), 1, 7, "somebody")[4:]
    assert answers.answer(request) is None
    heartbeat = next(each for each in exchanges if each.api_key == api_keys.BROKER_HEARTBEAT)
    header, body = heartbeat.read_request()
    answer = answers.answer(write_request(body, header.api_version, 77, "somebody else")[4:])
    assert answer is not None
    assert answer.frame[4:8] == (77).to_bytes(4)
