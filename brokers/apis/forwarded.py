"""APIs that a broker forwards to the controller unchanged (KafkaApis.forwardToController, KIP-590).

Covers topics, partitions, reassignments, elections, quotas, SCRAM credentials, ACLs, features, brokers and voters. The
error forms are for the case that no controller answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mockraft.brokers.apis.api import AnyApi, Api, Parked, RequestContext
from mockraft.kafka_api import error_responses
from mockraft.kafka_api.api import error_with_default_message
from mockraft.wire import messages
from mockraft.wire.message import Message
from mockraft.wire.messages.add_raft_voter_response import AddRaftVoterResponse
from mockraft.wire.messages.describe_quorum_response import DescribeQuorumResponse
from mockraft.wire.messages.remove_raft_voter_response import RemoveRaftVoterResponse


def _forwarded(name: str, error_form: Callable[[Any, int, str | None], Message] | None = None) -> AnyApi:
    def handle(_request: Message, ctx: RequestContext) -> Parked[bytes]:
        return ctx.broker.forwarding.forward(api, ctx)

    api: AnyApi = Api(
        messages.by_name(f"{name}Request"), messages.by_name(f"{name}Response"), handle, error_form, forwarded=True
    )
    return api


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
    _forwarded("DescribeQuorum", error_with_default_message(DescribeQuorumResponse)),
    _forwarded("UpdateFeatures"),
    _forwarded("UnregisterBroker"),
    _forwarded("UnregisterController"),
    _forwarded("AddRaftVoter", error_with_default_message(AddRaftVoterResponse)),
    _forwarded("RemoveRaftVoter", error_with_default_message(RemoveRaftVoterResponse)),
)
