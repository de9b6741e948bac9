import math
from typing import Any

import pytest
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import Json, from_json, to_json
from mockraft.wire.messages import (
    ApiVersionsRequest,
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    DescribeClientQuotasResponse,
    FetchResponse,
    MetadataRequest,
)
from mockraft.wire.messages.fetch_response import FetchableTopicResponse, PartitionData
from mockraft.wire.records import RegisterBrokerRecord, ZkMigrationStateRecord

from ..rows import each_row

UUID = bytes(range(16))
HEARTBEAT = {"brokerId": 1, "brokerEpoch": 9, "currentMetadataOffset": 16, "wantFence": True, "wantShutDown": False}
TOPIC: dict[str, Any] = {
    "name": "orders",
    "numPartitions": 3,
    "replicationFactor": 1,
    "assignments": [],
    "configs": [{"name": "retention.ms", "value": None}],
}


def test_names_are_camel_case_and_uuids_unpadded_base64url() -> None:
    tree = to_json(RegisterBrokerRecord(broker_id=3, incarnation_id=b"\xfb" * 16), 0)
    assert tree["brokerId"] == 3
    assert tree["incarnationId"] == "-_v7-_v7-_v7-_v7-_v7-w"


def test_tagged_field_is_omitted_at_its_default() -> None:
    assert "offlineLogDirs" not in to_json(BrokerHeartbeatRequest(), 1)
    assert to_json(BrokerHeartbeatRequest(offline_log_dirs=[UUID]), 1)["offlineLogDirs"] == ["AAECAwQFBgcICQoLDA0ODw"]


def test_a_field_that_the_version_lacks_is_refused_unless_it_may_be_ignored() -> None:
    with pytest.raises(WireError, match="offlineLogDirs"):
        to_json(BrokerHeartbeatRequest(offline_log_dirs=[UUID]), 0)
    assert to_json(ApiVersionsRequest(client_software_name="me"), 0) == {}


def test_null_is_refused_where_the_version_has_none() -> None:
    assert to_json(MetadataRequest(topics=None), 1)["topics"] is None
    with pytest.raises(WireError, match="topics"):
        to_json(MetadataRequest(topics=None), 0)
    with pytest.raises(WireError, match="null is not allowed"):
        from_json(BrokerHeartbeatRequest, {**HEARTBEAT, "brokerId": None}, 0)


def test_records_are_base64_or_only_their_size() -> None:
    partition = PartitionData(partition_index=0, records=b"\x00\xff\x10")
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=UUID, partitions=[partition])])
    tree: Any = to_json(response, 17)
    whole = tree["responses"][0]["partitions"][0]
    assert whole["records"] == "AP8Q"
    sized: Any = to_json(response, 17, records_as_size=True)
    assert sized["responses"][0]["partitions"][0]["recordsSizeInBytes"] == 3
    with pytest.raises(WireError, match="only its size is given"):
        from_json(FetchResponse, sized, 17)


def test_unknown_tagged_fields_are_kept_and_named() -> None:
    message = BrokerHeartbeatRequest(unknown_tagged_fields=[(77, b"\x01\x02")])
    tree = to_json(message, 1)
    assert tree["_unknownTaggedFields"] == [{"tag": 77, "data": "AQI="}]
    assert from_json(BrokerHeartbeatRequest, tree, 1).write(1) == message.write(1)
    with pytest.raises(WireError, match="has no tagged fields"):
        from_json(MetadataRequest, {"topics": [], "_unknownTaggedFields": []}, 1)


@each_row("value", [math.inf, -math.inf, "NaN", 1e300, -0.0])
def test_floats_without_json_number_are_strings(value: float | str) -> None:
    entries: Json = [{"entity": [], "values": [{"key": "rate", "value": value}]}]
    tree: dict[str, Json] = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "entries": entries}
    message = from_json(DescribeClientQuotasResponse, tree, 1)
    again: Any = to_json(message, 1)
    assert to_json(from_json(DescribeClientQuotasResponse, again, 1), 1) == again
    result = again["entries"][0]["values"][0]["value"]
    assert isinstance(result, str) == (value == "NaN" or math.isinf(float(value)))
    assert value == "NaN" or float(result) == value


def test_integers_may_be_decimal_or_hexadecimal_strings() -> None:
    message = from_json(BrokerHeartbeatRequest, {**HEARTBEAT, "brokerId": "0x10", "brokerEpoch": "-1"}, 0)
    assert (message.broker_id, message.broker_epoch) == (16, -1)


def test_record_in_a_file_of_another_name_is_found() -> None:
    assert to_json(ZkMigrationStateRecord(zk_migration_state=1), 0) == {"zkMigrationState": 1}


@each_row(
    ("change", "complaint"),
    [
        ({"brokerId": "one"}, "expected an int32, got 'one' (field brokerId)"),
        ({"brokerId": True}, "expected an int32, got True (field brokerId)"),
        ({"brokerId": 1 << 31}, "2147483648 does not fit an int32"),
        ({"wantFence": 1}, "expected true or false, got 1 (field wantFence)"),
        ({"offlineLogDirs": ["short"]}, "(field offlineLogDirs[0])"),
        ({"offlineLogDirs": "AAECAwQFBgcICQoLDA0ODw"}, "expected an array"),
        ({"wantFance": False}, "did you mean wantFence? (field wantFance)"),
        ({"unheardOf": 1}, "no such field; there are: brokerId, brokerEpoch"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_field(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(WireError) as caught:
        from_json(BrokerHeartbeatRequest, {**HEARTBEAT, **change}, 1)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("BrokerHeartbeatRequest v1: ")


def test_a_missing_field_is_named_and_a_misspelled_one_suggested() -> None:
    without = {key: value for key, value in HEARTBEAT.items() if key != "brokerEpoch"}
    with pytest.raises(WireError, match=r"a field that version 1 must have is missing \(field brokerEpoch\)"):
        from_json(BrokerHeartbeatRequest, without, 1)
    with pytest.raises(WireError, match=r"did you mean brokerEpoch or brokerId\? \(field brokerEpcoh\)"):
        from_json(BrokerHeartbeatRequest, {**without, "brokerEpcoh": 9}, 1)


def test_nested_errors_have_a_path() -> None:
    bad = {**TOPIC, "configs": [TOPIC["configs"][0], {"name": 5, "value": None}]}
    with pytest.raises(WireError) as caught:
        from_json(CreateTopicsRequest, {"topics": [TOPIC, bad], "timeoutMs": 1, "validateOnly": False}, 7)
    assert caught.value.field == "topics[1].configs[1].name"


def test_refuses_non_objects_and_unknown_versions() -> None:
    with pytest.raises(WireError, match="expected an object"):
        from_json(CreateTopicsRequest, {"topics": [3], "timeoutMs": 1, "validateOnly": False}, 7)
    with pytest.raises(WireError, match="no version 9"):
        to_json(CreateTopicsRequest(), 9)
    with pytest.raises(WireError, match="no version 1:"):
        from_json(CreateTopicsRequest, {}, 1)
