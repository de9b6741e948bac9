"""Requests that a match accepts, and its errors."""

from typing import Any

import pytest
from mockraft import stub
from mockraft.server.stubs.entities import ENTITIES
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.match import SCOPES, Match, StubRequest
from mockraft.wire.json_form import Json
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from mockraft.wire.messages.fetch_request import FetchRequest, ReplicaState
from mockraft.wire.names import camel

from ...rows import each_row


def asked(request: Any = None, **differing: Any) -> StubRequest:
    """A heartbeat of broker 1, which wants to be fenced at offset 5, unless told otherwise."""
    request = request or BrokerHeartbeatRequest(broker_id=1, want_fence=True, current_metadata_offset=5)
    scopes = {"api_key": request.api_key, "api_version": 1, "client_id": "raft-client-1", "connection": 3}
    scopes |= {"listener": "CONTROLLER", "node": 3000, "principal": "User:alice", "broker_id": 1, "request": request}
    return StubRequest(**{**scopes, **differing})


REGISTRATION = BrokerRegistrationRequest(
    broker_id=2,
    incarnation_id=bytes(15) + b"\1",
    rack=None,
    features=[
        Feature(name="kraft.version", min_supported_version=0, max_supported_version=1),
        Feature(name="group.version", min_supported_version=1, max_supported_version=1),
    ],
    log_dirs=[bytes(15) + b"\5"],
)


@each_row(
    ("tree", "matches"),
    [
        ({}, True),
        *(({"api": api}, True) for api in ("BrokerHeartbeat", "broker_heartbeat", "BrokerHeartbeatRequest", 63)),
        ({"api": ["Fetch", 63]}, True),
        ({"version": 1}, True),
        ({"version": {"min": 1, "max": 2}}, True),
        ({"version": {"max": 1}}, True),
        ({"brokerId": 1}, True),
        ({"brokerId": [1, 2]}, True),
        ({"brokerId": {"not": 2}}, True),
        ({"clientId": {"startsWith": "raft-"}}, True),
        ({"clientId": {"regex": r"client-\d$"}}, True),
        ({"clientId": {"contains": "client"}}, True),
        ({"connection": {"gt": 2, "lt": 4}}, True),
        ({"listener": "CONTROLLER", "node": 3000, "principal": "User:alice"}, True),
        ({"api": 63, "where": {"wantFence": True, "currentMetadataOffset": {"gte": 5, "lte": 5}}}, True),
        ({"api": 63, "where": {"want_fence": {"eq": True}, "current_metadata_offset": {"in": [4, 5]}}}, True),
        ({"api": 63, "where": {"cordonedLogDirs": {"exists": False}}}, True),
        ({"api": 63, "where": {"currentMetadataOffset": {"ne": 4}, "brokerEpoch": {"not": {"gt": 0}}}}, True),
        ({"where": {"wantFence": True}}, True),
        ({"api": "Fetch"}, False),
        ({"version": {"min": 2}}, False),
        ({"brokerId": 2}, False),
        ({"brokerId": {"not": [1, 3]}}, False),
        ({"clientId": "raft-client"}, False),
        ({"principal": "User:bob"}, False),
        ({"api": 63, "where": {"currentMetadataOffset": {"gte": 5, "lt": 5}}}, False),
        ({"api": 63, "where": {"cordonedLogDirs": {"exists": True}}}, False),
        ({"api": 63, "where": {"cordonedLogDirs": {"contains": "AAAAAAAAAAAAAAAAAAAAAQ"}}}, False),
        ({"where": {"maxWaitMs": 0}}, False),
    ],
)
def test_equal_fields_match_and_different_ones_do_not(tree: dict[str, Any], matches: bool) -> None:
    assert Match.from_json(tree)(asked()) is matches


@each_row(
    ("where", "found"),
    [
        ({"features[].name": {"contains": "group"}}, True),
        ({"features.name": "kraft.version"}, True),
        ({"features[].name": {"not": "kraft.version"}}, True),
        ({"features[].name": "share.version"}, False),
        ({"features[0].name": "kraft.version", "features[1].maxSupportedVersion": {"gte": 1}}, True),
        ({"features[2].name": {"exists": False}}, True),
        ({"incarnationId": "AAAAAAAAAAAAAAAAAAAAAQ"}, True),
        ({"incarnationId": bytes(15) + b"\1"}, True),
        ({"logDirs[]": "AAAAAAAAAAAAAAAAAAAABQ"}, True),
        ({"logDirs": ["AAAAAAAAAAAAAAAAAAAABQ"]}, True),
        ({"logDirs": []}, False),
        ({"logDirs": {"contains": "AAAAAAAAAAAAAAAAAAAABQ"}}, True),
        ({"logDirs": {"not": {"contains": "AAAAAAAAAAAAAAAAAAAABQ"}}}, False),
        ({"features": lambda features: len(features) == 2}, True),
        ({"logDirs": {"eq": ["AAAAAAAAAAAAAAAAAAAABQ"]}}, True),
        ({"rack": {"exists": False}}, True),
        ({"rack": {"startsWith": "r"}}, False),
    ],
)
def test_fields_within_are_reached(where: dict[str, Any], found: bool) -> None:
    assert Match.from_json({"api": "BrokerRegistration", "where": where})(asked(REGISTRATION)) is found


def test_keywords_equal_json() -> None:
    of_keywords = stub(
        "BrokerHeartbeat", broker_id=1, want_fence=True, current_metadata_offset__gte=5, client_id__startswith="raft"
    ).match
    of_json = Match.from_json(
        {
            "api": "BrokerHeartbeat",
            "brokerId": 1,
            "clientId": {"startsWith": "raft"},
            "where": {"wantFence": True, "currentMetadataOffset": {"gte": 5}},
        }
    )
    assert of_keywords.to_json() == of_json.to_json()
    deep = stub("BrokerRegistration", features__name__contains="group", log_dirs__exists=True).match
    assert deep(asked(REGISTRATION)) is True
    assert stub("BrokerHeartbeat", current_metadata_offset=lambda offset: offset % 5 == 0).match(asked()) is True


@each_row(
    ("tree", "field", "said"),
    [
        ({"api": "BrokerHeartbet"}, "api", "did you mean BrokerHeartbeat"),
        ({"api": 63, "wantFence": True}, "wantFence", "a field of the request goes into where"),
        ({"api": 63, "where": {"wantFance": True}}, "where.wantFance", "did you mean wantFence?"),
        ({"api": 63, "where": {"wantFence": 1}}, "where.wantFence", "expected bool, got 1"),
        ({"api": 63, "where": {"brokerEpoch": {"gte": "5"}}}, "where.brokerEpoch", "expected int64, got '5'"),
        ({"api": 63, "where": {"brokerEpoch": {"atLeast": 5}}}, "where.brokerEpoch", "there is no operator 'atLeast'"),
        ({"api": 63, "where": {"wantFence[]": True}}, "where.wantFence[]", "wantFence is no list"),
        ({"api": 63, "where": {"wantFence.x": True}}, "where.wantFence.x", "wantFence has no fields of its own"),
        ({"api": 62, "where": {"rack": {"contains": 5}}}, "where.rack", "expected string, got 5"),
        ({"api": 62, "where": {"logDirs": {"contains": "x"}}}, "where.logDirs", "expected uuid"),
        ({"api": 62, "where": {"incarnationId": "x"}}, "where.incarnationId", "expected uuid"),
        ({"api": 62, "where": {"features[].nam": "x"}}, "where.features[].nam", "did you mean name?"),
        ({"where": {"noSuchField": 1}}, "where.noSuchField", "no request has such a field"),
        ({"brokerId": "1"}, "brokerId", "expected an integer, got '1'"),
        ({"clientId": {"regex": "("}}, "clientId", "is no regular expression"),
        ({"clientId": {"regex": "x" * 1_001}}, "clientId", "1000 are enough"),
        ({"where": 7}, "where", "expected an object of conditions by field"),
    ],
)
def test_error_names_the_field_and_suggestions(tree: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(StubError) as refused:
        Match.from_json(tree)
    assert refused.value.field == field
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("request_body", "client_id", "broker_id"),
    [
        (BrokerHeartbeatRequest(broker_id=4), "x", 4),
        (FetchRequest(replica_state=ReplicaState(replica_id=5)), "x", 5),
        (FetchRequest(replica_id=6), "x", 6),
    ],
)
def test_broker_is_identified_by_its_requests(rig: Any, request_body: Any, client_id: str, broker_id: int) -> None:
    live = rig.node.script.stubs.add(stub(broker_id=broker_id))
    version = 11 if getattr(request_body, "replica_id", -1) >= 0 else None
    connection = rig.connect()
    rig.send(connection, rig.frame(request_body, version or request_body.max_version, client_id))
    assert live.call_count == 1


def test_every_scope_has_a_keyword() -> None:
    numbers: dict[str, Json] = dict.fromkeys(("version", "brokerId", "connection", "node", "broker", "partition"), 1)
    values = {**numbers, "api": "Fetch", "clientId": "c", "listener": "L", "principal": "User:a", "topic": "t"}
    assert values.keys() | {camel(name) for name in ENTITIES} == SCOPES.keys()
    assert Match.from_json(values).to_json() == values
