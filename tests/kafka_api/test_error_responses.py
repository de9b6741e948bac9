"""Error responses name each item of the request, as getErrorResponse of Kafka's request classes does."""

from typing import Any

import pytest
from mockraft.conformance.requests import complete
from mockraft.kafka_api.api import Api, error_code_only, error_with_default_message, error_with_message
from mockraft.server.apis.registry import APIS
from mockraft.wire import error_codes, messages
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from mockraft.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from mockraft.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from mockraft.wire.messages.unregister_broker_response import UnregisterBrokerResponse

from ..rows import each_row

AnyApi = Api[Any, Any]

CODE = error_codes.NOT_CONTROLLER
FAILED = {"errorCode": CODE, "errorMessage": "no"}
TWO = {"topics": [{"name": "a", "partitions": [{"partitionIndex": 3}, {"partitionIndex": 4}]}, {"name": "b"}]}
FORMS: list[tuple[str, Any, Any]] = [
    (
        "AlterConfigs",
        {"resources": [{"resourceType": 2, "resourceName": "a"}, {"resourceType": 4, "resourceName": "1"}]},
        {
            "responses": [
                {"resourceType": 2, "resourceName": "a", **FAILED},
                {"resourceType": 4, "resourceName": "1", **FAILED},
            ]
        },
    ),
    (
        "IncrementalAlterConfigs",
        {"resources": [{"resourceType": 2, "resourceName": "a"}]},
        {"responses": [{"resourceType": 2, "resourceName": "a", **FAILED}]},
    ),
    ("CreateAcls", {"creations": [{}, {}]}, {"results": [FAILED, FAILED]}),
    ("DeleteAcls", {"filters": [{}, {}]}, {"filterResults": [FAILED, FAILED]}),
    (
        "CreatePartitions",
        {"topics": [{"name": "a"}, {"name": "b"}]},
        {"results": [{"name": "a", **FAILED}, {"name": "b", **FAILED}]},
    ),
    ("CreateTopics", {"topics": [{"name": "a"}]}, {"topics": [{"name": "a", **FAILED}]}),
    (
        "AlterClientQuotas",
        {"entries": [{"entity": [{"entityType": "user", "entityName": "u"}]}]},
        {
            "entries": [
                {
                    "errorCode": CODE,
                    "errorMessage": error_codes.message(CODE),
                    "entity": [{"entityType": "user", "entityName": "u"}],
                }
            ]
        },
    ),
    (
        "AlterPartitionReassignments",
        TWO,
        {
            **FAILED,
            "responses": [
                {"name": "a", "partitions": [{"partitionIndex": 3, **FAILED}, {"partitionIndex": 4, **FAILED}]},
                {"name": "b"},
            ],
        },
    ),
    (
        "ListPartitionReassignments",
        {"topics": [{"name": "a", "partitionIndexes": [3, 4]}]},
        {**FAILED, "topics": [{"name": "a", "partitions": [{"partitionIndex": 3}, {"partitionIndex": 4}]}]},
    ),
    ("ListPartitionReassignments", {"topics": None}, FAILED),
    (
        "AlterUserScramCredentials",
        # In Java a surrogate, half of a character above U+FFFF, is smaller than U+FF5E.
        {"deletions": [{"name": "～"}, {"name": "😀"}], "upsertions": [{"name": "～"}, {"name": "b"}]},
        {"results": [{"user": "b", **FAILED}, {"user": "😀", **FAILED}, {"user": "～", **FAILED}]},
    ),
    (
        "DeleteTopics",
        {"topics": [{"name": "a"}, {"name": None, "topicId": "AAAAAAAAAAAAAAAAAAAAAw"}]},
        {
            "responses": [
                {"name": "a", "errorCode": CODE},
                {"name": None, "topicId": "AAAAAAAAAAAAAAAAAAAAAw", "errorCode": CODE},
            ]
        },
    ),
    ("DescribeUserScramCredentials", {"users": [{"name": "u"}]}, {**FAILED, "results": [FAILED]}),
    ("DescribeUserScramCredentials", {"users": None}, FAILED),
    (
        "ElectLeaders",
        {"topicPartitions": [{"topic": "a", "partitions": [3, 4]}]},
        {
            "errorCode": CODE,
            "replicaElectionResults": [
                {"topic": "a", "partitionResult": [{"partitionId": 3, **FAILED}, {"partitionId": 4, **FAILED}]}
            ],
        },
    ),
    ("ElectLeaders", {"topicPartitions": None}, {"errorCode": CODE}),
    ("BrokerHeartbeat", {}, {"errorCode": CODE}),
    ("AllocateProducerIds", {}, {"errorCode": CODE}),
    ("CreateDelegationToken", {}, {"errorCode": CODE, "principalName": "ANONYMOUS", "expiryTimestampMs": -1}),
    (
        "DescribeConfigs",
        {"resources": [{"resourceType": 2, "resourceName": "a"}]},
        {"results": [{"resourceType": 2, "resourceName": "a", "errorCode": CODE}]},
    ),
    ("DescribeQuorum", {}, {"errorCode": CODE, "topics": []}),
    ("Fetch", {}, {"errorCode": CODE, "responses": []}),
    ("UpdateFeatures", {"featureUpdates": [{"feature": "a"}]}, FAILED),
    ("UnregisterBroker", {}, FAILED),
]


def among(found: Any, expected: Any) -> Any:
    """Return those fields of the JSON that the expected one has too."""
    if isinstance(expected, dict):
        return {key: among(found[key], value) for key, value in expected.items()}
    if isinstance(expected, list):
        return [among(each, other) for each, other in zip(found, expected, strict=True)]
    return found


@each_row(("name", "request_tree", "expected"), FORMS)
def test_each_item_gets_the_error(name: str, request_tree: Any, expected: Any) -> None:
    api = APIS[messages.by_name(f"{name}Request").api_key]
    version = api.max_version
    request = from_json(api.request, complete(name, request_tree, version), version)
    response = api.response.read(api.error(request, CODE, "no").write(version), version)
    assert among(to_json(response, version), expected) == expected


def test_elect_leaders_has_no_error_of_its_own_in_version_0() -> None:
    api = APIS[messages.by_name("ElectLeadersRequest").api_key]
    request = from_json(
        api.request, complete("ElectLeaders", {"topicPartitions": [{"topic": "a", "partitions": [3]}]}, 0), 0
    )
    error = api.error(request, CODE, "no")
    (topic,) = api.response.read(error.write(0), 0).replica_election_results
    assert [(each.partition_id, each.error_code) for each in topic.partition_result] == [(3, CODE)]
    assert api.response.read(error.write(2), 2).error_code == CODE


def test_topics_to_delete_have_names_only_below_version_6() -> None:
    api = APIS[messages.by_name("DeleteTopicsRequest").api_key]
    error = api.error(from_json(api.request, complete("DeleteTopics", {"topicNames": ["a", "b"]}, 5), 5), CODE, "no")
    found = api.response.read(error.write(5), 5).responses
    assert [(each.name, each.error_code) for each in found] == [("a", CODE), ("b", CODE)]


def test_a_failed_handler_is_answered_with_unknown_server_error_without_a_text() -> None:
    response = Api(UnregisterBrokerRequest, UnregisterBrokerResponse, print).unknown_server_error(
        UnregisterBrokerRequest()
    )
    assert (response.error_code, response.error_message) == (error_codes.UNKNOWN_SERVER_ERROR, None)


@each_row(
    ("form", "text"),
    [(error_code_only, ""), (error_with_message, "no"), (error_with_default_message, error_codes.message(CODE))],
)
def test_forms_without_items(form: Any, text: str) -> None:
    response = form(UnregisterBrokerResponse)(UnregisterBrokerRequest(), CODE, "no")
    assert (response.error_code, response.error_message or "") == (CODE, text)


def test_an_api_has_the_versions_of_its_message_unless_others_are_given() -> None:
    messages_of = BrokerHeartbeatRequest, BrokerHeartbeatResponse
    assert Api(*messages_of, print).versions == (0, 2)
    assert Api(*messages_of, print, min_version=0, max_version=0).versions == (0, 0)
    assert Api(*messages_of, print, min_version=1).versions == (1, 2)
    create = APIS[messages.by_name("CreateTopicsRequest").api_key]
    assert Api(create.request, create.response, print, create.error_form, min_version=0).versions == (0, 7)
    assert Api(*messages_of, print, max_version=1).api_key == 63


def test_an_api_without_a_way_to_answer_errors_is_refused() -> None:
    with pytest.raises(TypeError, match="AlterClientQuotasResponse has no error_code: the API needs an error_form"):
        Api(AlterClientQuotasRequest, AlterClientQuotasResponse, print)
