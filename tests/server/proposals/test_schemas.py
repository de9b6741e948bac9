"""A controller with message specs that only their author knows."""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka_api.api import Parked
from mockraft.releases import NEWEST, release
from mockraft.server.apis.fetch import API as FETCH
from mockraft.server.apis.overlaid import apis_over
from mockraft.server.apis.registry import APIS
from mockraft.server.apis.unregister_broker import API as UNREGISTER_BROKER
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.testing.proposals import overlay_of
from mockraft.wire import error_codes
from mockraft.wire.client import connect
from mockraft.wire.connection import write_request
from mockraft.wire.errors import WireError
from mockraft.wire.messages import assign_replicas_to_dirs_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.messages.fetch_response import FetchResponse
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.overlay import Overlay
from mockraft.wire.recast import recast
from mockraft.wire.records.topic_record import TopicRecord

from ...conftest import Cluster
from .conftest import Proposed

ROOT = Path(__file__).parents[3]
KIP_9999 = ROOT / "examples" / "kip-9999"


def overlay(*folders: Path) -> Overlay:
    found = overlay_of(schemas=folders)
    assert found is not None
    return found


def spec(name: str) -> dict[str, Any]:
    folder = "metadata" if name.endswith("Record") else "message"
    lines = release(NEWEST).specs[f"{folder}/{name}.json"].splitlines()
    return dict(json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//"))))


@pytest.fixture
def folder_of(tmp_path: Path) -> Callable[[Iterable[dict[str, Any]]], Path]:
    def write(trees: Iterable[dict[str, Any]]) -> Path:
        for tree in trees:
            (tmp_path / f"{tree['name']}.json").write_text(json.dumps(tree))
        return tmp_path

    return write


def test_without_an_overlay_of_an_api_it_is_the_same() -> None:
    table = apis_over(APIS, overlay(KIP_9999))
    assert [key for key in APIS if table[key] is not APIS[key]] == [UNREGISTER_BROKER.api_key]
    assert list(table) == sorted(table)


def test_a_request_that_is_not_for_controllers_is_not_offered(folder_of: Any) -> None:
    trees = [json.loads((KIP_9999 / f"DescribeDiskHealth{kind}.json").read_text()) for kind in ("Request", "Response")]
    trees[0]["listeners"] = ["broker"]
    assert 9000 not in apis_over(APIS, overlay(folder_of(trees)))


async def test_an_error_is_injected_into_an_api_of_a_fork(folder_of: Any) -> None:
    """With the API key, listeners and fields of aiven/inkless' AlterDisklessSwitch."""
    about = {"apiKey": 501, "validVersions": "0", "flexibleVersions": "0+"}
    fields = [
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    ]
    request = {"name": "AlterDisklessSwitchRequest", "type": "request", "listeners": ["broker", "controller"]}
    response = {"name": "AlterDisklessSwitchResponse", "type": "response", "fields": fields}
    folder = folder_of([about | request | {"fields": []}, about | response])
    async with Controller(release="4.2", schemas=folder) as controller:
        connection = await connect(controller.host, controller.port, messages=controller.messages)
        controller.stub(501).inject_error("UNKNOWN_TOPIC_OR_PARTITION", "no such log")
        answer: Any = await connection.send(controller.messages.by_name("AlterDisklessSwitchRequest")())
        assert (answer.error_code, answer.error_message) == (3, "no such log")
        await connection.close()


async def test_api_versions_itself_may_be_changed(folder_of: Any, tmp_path: Path) -> None:
    changed = spec("ApiVersionsResponse")
    changed["fields"].append({"name": "Mood", "type": "string", "versions": "0+", "default": "fine"})
    async with Controller(schemas=[folder_of([changed])]) as controller:
        connection = await connect(controller.host, controller.port, messages=overlay(tmp_path))
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        response: Any = await connection.send(request)
        await connection.close()
    assert (response.mood, response.error_code) == ("fine", 0)
    assert len(response.api_keys) > 40


def test_a_refusal_uses_the_overlays_response() -> None:
    api = apis_over(APIS, overlay(KIP_9999))[UNREGISTER_BROKER.api_key]
    refused = api.error(api.request(), error_codes.NOT_CONTROLLER, "elsewhere")
    assert (type(refused), refused.error_code) == (api.response, error_codes.NOT_CONTROLLER)
    assert refused.freed_log_dirs == []


def test_a_request_of_the_overlay_may_be_forwarded(proposed: type[Proposed]) -> None:
    cluster = proposed(schemas=[KIP_9999])
    cluster.start(1)
    asked = cluster.overlay.module("UnregisterBrokerRequest").UnregisterBrokerRequest(broker_id=1, reason="moved")
    envelope = EnvelopeRequest(
        request_data=write_request(asked, 1, 7, "tool")[4:],
        request_principal=b"\0\0" + DefaultPrincipalData(type="User", name="admin").write(0),
        client_host_address=bytes([127, 0, 0, 1]),
    )
    data = cluster.ask(envelope).response_data
    answer: Any = cluster.overlay.response(64).read(data[5:], 1)
    assert (data[:4], answer.error_code, answer.freed_log_dirs) == (bytes([0, 0, 0, 7]), error_codes.NONE, [])
    assert 1 not in cluster.controller.image.cluster.brokers


def test_an_unstable_version_is_not_offered(folder_of: Any) -> None:
    trees = [json.loads((KIP_9999 / f"DescribeDiskHealth{kind}.json").read_text()) for kind in ("Request", "Response")]
    for tree in trees:
        tree |= {"validVersions": "0-1", "latestVersionUnstable": True}
    table = apis_over(APIS, overlay(folder_of(trees)))
    assert (table[9000].min_version, table[9000].max_version) == (0, 0)


def test_deferred_answer_uses_the_overlays_response(folder_of: Any) -> None:
    tree = spec("FetchResponse")
    tree["fields"].append({"name": "Mood", "type": "int8", "versions": "18+", "taggedVersions": "18+", "tag": 9})
    answers = iter([None, FetchResponse(session_id=5)])
    parked = Parked(100, lambda now_ms, expired: next(answers))
    waiting = replace(FETCH, handle=lambda *_: parked)
    api = apis_over({FETCH.api_key: waiting}, overlay(folder_of([tree])))[FETCH.api_key]
    result = api.handle(None, None, None)  # type: ignore[arg-type]
    assert (result.deadline_ms, result.retry(1, False)) == (100, None)
    answer = result.retry(2, False)
    assert answer is not None
    assert (answer.session_id, answer.mood) == (5, 0)


def test_fields_missing_from_the_other_class_have_their_defaults() -> None:
    worded = overlay_of(["kip-1066"])
    assert worded is not None
    record = BrokerHeartbeatRequest(broker_id=7)
    result: Any = recast(record, worded.request(63))
    assert (result.broker_id, result.cordoned_log_dirs) == (7, [])
    assert recast(result, BrokerHeartbeatRequest, 0) == record


def test_a_renamed_field_is_the_same_field_both_ways() -> None:
    worded = overlay_of(["kip-858"])
    assert worded is not None
    words, shipped = worded.module("AssignReplicasToDirsRequest"), assign_replicas_to_dirs_request
    request = words.AssignReplicasToDirsRequest(
        directories=[words.DirectoryData(topics=[words.TopicData(topic_name=b"t" * 16)])]
    )
    for version in (None, 0):
        result = recast(request, shipped.AssignReplicasToDirsRequest, version)
        assert result.directories[0].topics[0].topic_id == b"t" * 16
        assert recast(result, words.AssignReplicasToDirsRequest, version) == request


class TestRecords:
    @pytest.fixture
    def speaks(self) -> Overlay:
        return overlay(KIP_9999)

    def test_unknown_record_is_logged_and_ignored(
        self, new_cluster: type[Cluster], speaks: Overlay, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        cluster = new_cluster(data_dir=tmp_path, overlay=speaks)
        cluster.write(RecordAt(speaks.module("DiskHealthRecord").DiskHealthRecord(broker_id=1, healthy_percent=7), 0))
        cluster.log.close()
        with caplog.at_level(logging.WARNING, "mockraft.records"):
            again = new_cluster(data_dir=tmp_path, overlay=speaks)
        found = [record for _, (record, _) in again.log.records() if record.api_key == 900]
        assert [record.healthy_percent for record in found] == [7]
        assert "DiskHealthRecord (type 900) is a record that Kafka does not have" in caplog.text
        again.log.close()

    def test_without_its_schema_the_log_is_one_of_a_newer_kafka(
        self, new_cluster: type[Cluster], speaks: Overlay, tmp_path: Path
    ) -> None:
        cluster = new_cluster(data_dir=tmp_path, overlay=speaks)
        cluster.write(RecordAt(speaks.by_name("DiskHealthRecord")(), 0))
        cluster.log.close()
        with pytest.raises(DataDirError, match="there is no metadata record of type 900"):
            new_cluster(data_dir=tmp_path)

    def test_kafkas_record_is_written_in_the_first_sufficient_version(
        self, new_cluster: type[Cluster], folder_of: Any
    ) -> None:
        tree = spec("TopicRecord")
        tree["validVersions"] = "0-2"
        tree["fields"][0]["versions"] = "1+"
        cluster = new_cluster(overlay=overlay(folder_of([tree])))
        cluster.write(RecordAt(TopicRecord(name="t", topic_id=bytes(15) + b"a"), 0))
        (written,) = cluster.written()
        assert (type(written.record), written.record.name, written.version) == (TopicRecord, "t", 1)

    def test_record_beyond_every_version_is_refused(self, new_cluster: type[Cluster], folder_of: Any) -> None:
        tree = spec("TopicRecord")
        tree["fields"][0]["type"] = "int32"
        cluster = new_cluster(overlay=overlay(folder_of([tree])))
        with pytest.raises(WireError, match="TopicRecord"):
            cluster.write(RecordAt(TopicRecord(name="t"), 0))

    def test_snapshot_uses_the_same_records(self, proposed: type[Proposed]) -> None:
        cluster = proposed("kip-1066")
        cluster.start(1, cordoned_log_dirs=[cluster.registration_request(1).log_dirs[0]])
        snapshot_id = cluster.log.write_snapshot(cluster.controller.image.to_records(30), cluster.now_ms)
        assert snapshot_id is not None
        assert cluster.replayed().cluster.brokers[1] == cluster.broker(1)
