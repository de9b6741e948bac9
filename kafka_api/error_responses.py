"""Error responses of APIs that both controllers and brokers have: getErrorResponse of Kafka's request classes.

All but one import their classes when they are called: otherwise the first request for CreateTopics would wait until
the messages of twelve other APIs are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message
from mockraft.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

if TYPE_CHECKING:
    from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
    from mockraft.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
    from mockraft.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
    from mockraft.wire.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
    from mockraft.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
    from mockraft.wire.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
    from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
    from mockraft.wire.messages.delete_topics_response import DeleteTopicsResponse
    from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
    from mockraft.wire.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse
    from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest
    from mockraft.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
    from mockraft.wire.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse


def _for_each(asked: str, results: str, item: str, *copied: str) -> Callable[[Message, int, str | None], Any]:
    """Return the form with the error for each item that was asked; `copied` are the fields that name the item."""

    def error(request: Message, error_code: int, message: str | None) -> Any:
        response: Any = messages.response(request.api_key)
        result = getattr(import_module(response.__module__), item)
        names = [{name: getattr(each, name) for name in copied} for each in getattr(request, asked)]
        return response(**{results: [result(error_code=error_code, error_message=message, **each) for each in names]})

    return error


_RESOURCE = ("resource_type", "resource_name")

alter_configs = _for_each("resources", "responses", "AlterConfigsResourceResponse", *_RESOURCE)
incremental_alter_configs = alter_configs
create_acls = _for_each("creations", "results", "AclCreationResult")
delete_acls = _for_each("filters", "filter_results", "DeleteAclsFilterResult")
create_partitions = _for_each("topics", "results", "CreatePartitionsTopicResult", "name")
create_topics = _for_each("topics", "topics", "CreatableTopicResult", "name")


def alter_client_quotas(
    request: AlterClientQuotasRequest, error_code: int, _message: str | None
) -> AlterClientQuotasResponse:
    """Return the error for each entry of the request, with the code's default message."""
    from mockraft.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData, EntryData

    return AlterClientQuotasResponse(
        entries=[
            EntryData(
                error_code=error_code,
                error_message=error_codes.message(error_code),
                entity=[EntityData(entity_type=e.entity_type, entity_name=e.entity_name) for e in entry.entity],
            )
            for entry in request.entries
        ]
    )


def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, error_code: int, message: str | None
) -> AlterPartitionReassignmentsResponse:
    """Return the error for the request and for each of its partitions."""
    from mockraft.wire.messages.alter_partition_reassignments_response import (
        AlterPartitionReassignmentsResponse,
        ReassignablePartitionResponse,
        ReassignableTopicResponse,
    )

    return AlterPartitionReassignmentsResponse(
        error_code=error_code,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=error_code, error_message=message
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, error_code: int, message: str | None
) -> ListPartitionReassignmentsResponse:
    """Return the error for the request."""
    from mockraft.wire.messages.list_partition_reassignments_response import (
        ListPartitionReassignmentsResponse,
        OngoingPartitionReassignment,
        OngoingTopicReassignment,
    )

    return ListPartitionReassignmentsResponse(
        error_code=error_code,
        error_message=message,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, error_code: int, message: str | None
) -> AlterUserScramCredentialsResponse:
    """Return the error for each user of the request, once, in alphabetical order."""
    from mockraft.wire.messages.alter_user_scram_credentials_response import (
        AlterUserScramCredentialsResponse,
        AlterUserScramCredentialsResult,
    )

    users = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
    # String.compareTo: by UTF-16 units.
    ordered = sorted(users, key=lambda user: user.encode("utf-16-be", "surrogatepass"))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=error_code, error_message=message) for user in ordered
        ]
    )


def delete_topics(request: DeleteTopicsRequest, error_code: int, _message: str | None) -> DeleteTopicsResponse:
    """Return the error for each topic of the request; Kafka leaves out the message here."""
    from mockraft.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse

    named = [DeletableTopicResult(name=name, error_code=error_code) for name in request.topic_names]
    identified = [
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error_code)
        for topic in request.topics
    ]
    return DeleteTopicsResponse(responses=named + identified)


def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, error_code: int, message: str | None
) -> DescribeUserScramCredentialsResponse:
    """Return the error at the top level and for each user, without names."""
    from mockraft.wire.messages.describe_user_scram_credentials_response import (
        DescribeUserScramCredentialsResponse,
        DescribeUserScramCredentialsResult,
    )

    return DescribeUserScramCredentialsResponse(
        error_code=error_code,
        error_message=message,
        results=[
            DescribeUserScramCredentialsResult(error_code=error_code, error_message=message)
            for _ in request.users or ()
        ],
    )


def elect_leaders(request: ElectLeadersRequest, error_code: int, message: str | None) -> ElectLeadersResponse:
    """Return the error for the request and for each of its partitions."""
    return _ElectLeadersError(
        error_code=error_code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=each, error_code=error_code, error_message=message)
                    for each in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


class _ElectLeadersError(ElectLeadersResponse):
    """A response whose version 0 reports the error in the partitions only: it has no top-level error code."""

    __slots__ = ()

    def write(self, version: int) -> bytes:
        if version == 0:
            return ElectLeadersResponse(replica_election_results=self.replica_election_results).write(version)
        return super().write(version)
