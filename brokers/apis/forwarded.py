"""APIs that a broker forwards to the controller unchanged (KafkaApis.forwardToController, KIP-590).

This module only defines the error form of each API for the case that no controller answers: getErrorResponse of its
request class. Covers topics, partitions, reassignments, elections, quotas, SCRAM credentials, ACLs, features, brokers
and voters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mockraft.brokers.apis.api import AnyApi, Api, Parked, RequestContext
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message
from mockraft.wire.messages.alter_client_quotas_response import EntityData, EntryData
from mockraft.wire.messages.alter_partition_reassignments_response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from mockraft.wire.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResult
from mockraft.wire.messages.create_acls_response import AclCreationResult
from mockraft.wire.messages.create_partitions_response import CreatePartitionsTopicResult
from mockraft.wire.messages.create_topics_response import CreatableTopicResult
from mockraft.wire.messages.delete_acls_response import DeleteAclsFilterResult
from mockraft.wire.messages.delete_topics_response import DeletableTopicResult
from mockraft.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from mockraft.wire.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
    from mockraft.wire.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
    from mockraft.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
    from mockraft.wire.messages.create_acls_request import CreateAclsRequest
    from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest
    from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
    from mockraft.wire.messages.delete_acls_request import DeleteAclsRequest
    from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
    from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest
    from mockraft.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest

ErrorFields = dict[str, Any]
"""The fields of an error response."""


def _with_message(_request: Message, code: int, message: str | None) -> ErrorFields:
    return {"error_code": code, "error_message": message}


def _with_default_message(_request: Message, code: int, _message: str | None) -> ErrorFields:
    return {"error_code": code, "error_message": error_codes.message(code)}


def _create_topics(request: CreateTopicsRequest, code: int, message: str | None) -> ErrorFields:
    return {
        "topics": [CreatableTopicResult(name=t.name, error_code=code, error_message=message) for t in request.topics]
    }


def _delete_topics(request: DeleteTopicsRequest, code: int, _message: str | None) -> ErrorFields:
    named = [DeletableTopicResult(name=name, error_code=code) for name in request.topic_names]
    identified = [DeletableTopicResult(name=t.name, topic_id=t.topic_id, error_code=code) for t in request.topics]
    return {"responses": named + identified}


def _create_partitions(request: CreatePartitionsRequest, code: int, message: str | None) -> ErrorFields:
    return {
        "results": [
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        ]
    }


def _elect_leaders(request: ElectLeadersRequest, code: int, message: str | None) -> ErrorFields:
    return {
        "error_code": code,
        "replica_election_results": [
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=each, error_code=code, error_message=message)
                    for each in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    }


def _alter_reassignments(request: AlterPartitionReassignmentsRequest, code: int, message: str | None) -> ErrorFields:
    return {
        "error_code": code,
        "error_message": message,
        "responses": [
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=code, error_message=message
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    }


def _list_reassignments(request: ListPartitionReassignmentsRequest, code: int, message: str | None) -> ErrorFields:
    return {
        "error_code": code,
        "error_message": message,
        "topics": [
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    }


def _alter_quotas(request: AlterClientQuotasRequest, code: int, _message: str | None) -> ErrorFields:
    return {
        "entries": [
            EntryData(
                error_code=code,
                error_message=error_codes.message(code),
                entity=[EntityData(entity_type=e.entity_type, entity_name=e.entity_name) for e in entry.entity],
            )
            for entry in request.entries
        ]
    }


def _alter_scram(request: AlterUserScramCredentialsRequest, code: int, message: str | None) -> ErrorFields:
    users = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
    return {
        "results": [
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
            for user in sorted(users, key=lambda user: user.encode("utf-16-be", "surrogatepass"))
        ]
    }


def _create_acls(request: CreateAclsRequest, code: int, message: str | None) -> ErrorFields:
    return {"results": [AclCreationResult(error_code=code, error_message=message) for _ in request.creations]}


def _delete_acls(request: DeleteAclsRequest, code: int, message: str | None) -> ErrorFields:
    return {"filter_results": [DeleteAclsFilterResult(error_code=code, error_message=message) for _ in request.filters]}


class _ElectLeadersResponse(ElectLeadersResponse):
    """A response whose version 0 reports errors in the partitions only: it has no top-level error code."""

    __slots__ = ()

    def write(self, version: int) -> bytes:
        if version == 0:
            return ElectLeadersResponse(replica_election_results=self.replica_election_results).write(version)
        return super().write(version)


def _forwarded(
    name: str, error_fields: Callable[[Any, int, str | None], ErrorFields], response: type[Any] | None = None
) -> AnyApi:
    response = response or messages.by_name(f"{name}Response")

    def handle(_request: Message, ctx: RequestContext) -> Parked[bytes]:
        return ctx.broker.forwarding.forward(api, ctx)

    def error(request: Any, code: int, message: str | None) -> Any:
        return response(**error_fields(request, code, message))

    api = Api(messages.by_name(f"{name}Request"), response, handle, error, forwarded=True)
    return api


APIS: Final = [
    _forwarded("CreateTopics", _create_topics),
    _forwarded("DeleteTopics", _delete_topics),
    _forwarded("CreateAcls", _create_acls),
    _forwarded("DeleteAcls", _delete_acls),
    _forwarded("CreatePartitions", _create_partitions),
    _forwarded("ElectLeaders", _elect_leaders, _ElectLeadersResponse),
    _forwarded("AlterPartitionReassignments", _alter_reassignments),
    _forwarded("ListPartitionReassignments", _list_reassignments),
    _forwarded("AlterClientQuotas", _alter_quotas),
    _forwarded("AlterUserScramCredentials", _alter_scram),
    _forwarded("DescribeQuorum", _with_default_message),
    _forwarded("UpdateFeatures", _with_message),
    _forwarded("UnregisterBroker", _with_message),
    _forwarded("AddRaftVoter", _with_default_message),
    _forwarded("RemoveRaftVoter", _with_default_message),
]
