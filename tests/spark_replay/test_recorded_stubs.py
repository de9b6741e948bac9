"""Recorded responses are repeated: from a capture to stubs, from the stubs to the same client."""

from pathlib import Path
from typing import Any

from mockraft import Controller
from mockraft.releases import release
from mockraft.server.stubs.stub import Stub
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recorded_stubs import MatchedFields, stubs_of
from mockraft.spark_replay.recording import Filter, Recording
from mockraft.spark_replay.recording_proxy import RecordingProxy
from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire.client import connect
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

CAPTURES = Path(__file__).parents[1] / "captures"
FEATURES = {name: high for name, (_, high) in release().feature_ranges().items()}


async def talk(port: int, cluster_id: str) -> list[Any]:
    """Send a broker's requests and return the responses as JSON; the same requests for any controller."""
    client = await connect("127.0.0.1", port, client_id="1")
    register = BrokerRegistrationRequest(
        broker_id=1,
        cluster_id=cluster_id,
        incarnation_id=b"an incarnation..",
        listeners=[Listener(name="PLAINTEXT", host="h", port=9092)],
        features=[Feature(name=name, max_supported_version=level) for name, level in FEATURES.items()],
        log_dirs=[b"a directory here"],
    )
    registered = await client.send(register)
    assert registered.error_code == 0
    answers = [registered, await client.send(DescribeClusterRequest(endpoint_type=2))]
    for offset in (0, 0, 10_000):
        beat = BrokerHeartbeatRequest(
            broker_id=1, broker_epoch=registered.broker_epoch, current_metadata_offset=offset, want_fence=offset == 0
        )
        answers.append(await client.send(beat))
    for _ in range(3):
        answers.append(await client.send(AllocateProducerIdsRequest(broker_id=1, broker_epoch=registered.broker_epoch)))
    await client.close()
    return [to_json(each, each.max_version) for each in answers]


async def recorded(tmp_path: Path) -> tuple[list[Any], list[Captured]]:
    path = tmp_path / "run.pcapng"
    async with (
        Controller(seed=4) as controller,
        RecordingProxy(Recording(path), [Endpoint(controller.host, controller.port)]) as proxy,
    ):
        answers = await talk(int(proxy.bootstrap.rpartition(":")[2]), controller.cluster_id)
    return answers, read_exchanges(path)


async def served(controller: Controller, stubs: list[dict[str, Any]]) -> None:
    for each in stubs:
        controller.running.node.script.stubs.add(Stub.from_json(each))


async def test_same_requests_get_recorded_responses_from_another_controller(tmp_path: Path) -> None:
    answers, exchanges = await recorded(tmp_path)
    found = stubs_of(exchanges)
    assert not found.left_out
    async with Controller(seed=99) as other:
        await served(other, found.stubs)
        again = await talk(other.port, other.cluster_id)
        assert not other.running.node.script.stubs.unused()
    # Only the address is what it was where it was recorded: the proxy told its own.
    said, result = (each.pop(1)["brokers"][0] for each in (answers, again))
    assert (said["brokerId"], result["brokerId"]) == (3000, 3000)
    assert again == answers
    starts = [each["producerIdStart"] for each in again if "producerIdStart" in each]
    assert starts == [0, 1000, 2000]


async def test_repeats_with_other_answers_are_a_scenario_and_without_scenarios_the_last_one(tmp_path: Path) -> None:
    _, exchanges = await recorded(tmp_path)
    kept = Filter.parse(["AllocateProducerIds"])
    steps: list[dict[str, Any]] = stubs_of(exchanges, kept=kept).stubs
    assert [each["scenario"].get("requires") for each in steps] == ["Started", "answer 2", "answer 3"]
    assert [each["scenario"].get("then") for each in steps] == ["answer 2", "answer 3", None]
    last: Any
    (last,) = stubs_of(exchanges, kept=kept, repeats_as_scenarios=False).stubs
    assert "scenario" not in last
    assert last["actions"][0]["answer"]["producerIdStart"] == 2000


async def test_random_fields_are_not_matched_and_fields_are_selectable(tmp_path: Path) -> None:
    _, exchanges = await recorded(tmp_path)
    kept = Filter.parse(["BrokerRegistration"])
    stub: Any
    (stub,) = stubs_of(exchanges, kept=kept).stubs
    assert stub["match"]["where"] == {
        "brokerId": 1,
        "listeners[0].name": "PLAINTEXT",
        "listeners[0].host": "h",
        "listeners[0].securityProtocol": 0,
        "isMigratingZkBroker": False,
    }
    (stub,) = stubs_of(exchanges, kept=kept, fields=MatchedFields(["brokerId"]), scopes=()).stubs
    assert stub["match"] == {"api": "BrokerRegistration", "where": {"brokerId": 1}}
    (stub,) = stubs_of(exchanges, kept=kept, fields=MatchedFields(ignored=["listeners"]), scopes=["version"]).stubs
    assert stub["match"] == {
        "api": "BrokerRegistration",
        "version": 4,
        "where": {"brokerId": 1, "isMigratingZkBroker": False},
    }


def test_mockraft_accepts_every_stub_of_a_real_capture() -> None:
    found = stubs_of(read_exchanges(CAPTURES / "controller-4.3.1.pcap", {19093}), kept=Filter.parse(["!Fetch"]))
    assert len(found.stubs) > 50
    assert [Stub.from_json(each).match.to_json() for each in found.stubs] == [each["match"] for each in found.stubs]
    assert {api for api, _ in found.left_out} == {"Fetch", "Envelope", "ControllerRegistration"}
