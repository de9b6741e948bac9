"""APIs that a broker forwards to the controller unchanged (KafkaApis.forwardToController, KIP-590).

Covers topics, partitions, reassignments, elections, quotas, SCRAM credentials, ACLs, features, brokers and voters. The
error forms are for the case that no controller answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mockraft.brokers.apis.api import AnyApi, Api, Parked, RequestContext
from mockraft.serving import error_responses
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message


def _forwarded(name: str, error: Callable[[Any, int, str | None], Message]) -> AnyApi:
    def handle(_request: Message, ctx: RequestContext) -> Parked[bytes]:
        return ctx.broker.forwarding.forward(api, ctx)

    api: AnyApi = Api(
        messages.by_name(f"{name}Request"), messages.by_name(f"{name}Response"), handle, error, forwarded=True
    )
    return api


def _whole(name: str, *, default_message: bool = False) -> AnyApi:
    """Return an API whose error response has a code and a message, the given one or the code's default."""
    response: type[Any] = messages.by_name(f"{name}Response")

    def error(_request: Message, code: int, message: str | None) -> Message:
        error_message = error_codes.message(code) if default_message else message
        answer: Message = response(error_code=code, error_message=error_message)
        return answer

    return _forwarded(name, error)


APIS: Final[tuple[AnyApi, ...]] = (
    _forwarded("CreateTopics", error_responses.create_topics),
    _forwarded("DeleteTopics", error_responses.delete_topics),
    _forwarded("CreateAcls", error_responses.create_acls),
    _forwarded("DeleteAcls", error_responses.delete_acls),
    _forwarded("CreatePartitions", error_responses.create_partitions),
    _forwarded("ElectLeaders", error_responses.elect_leaders),
    _forwarded("AlterPartitionReassignments", error_responses.alter_partition_reassignments),
    _forwarded("ListPartitionReassignments", error_responses.list_partition_reassignments),
    _forwarded("AlterClientQuotas", error_responses.alter_client_quotas),
    _forwarded("AlterUserScramCredentials", error_responses.alter_user_scram_credentials),
    _whole("DescribeQuorum", default_message=True),
    _whole("UpdateFeatures"),
    _whole("UnregisterBroker"),
    _whole("AddRaftVoter", default_message=True),
    _whole("RemoveRaftVoter", default_message=True),
)
