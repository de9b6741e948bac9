"""ElectLeaders (43), versions 0-2: KIP-183 (preferred leaders), KIP-460 (unclean elections, from version 1).

A request with a timeout of zero expires before its turn in Kafka's event queue; any other is done in time.
"""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError, error_fields
from mockraft.server.controller.topics.leader_elections import Elections, elect_leaders
from mockraft.wire import error_codes
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest
from mockraft.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult


def handle(request: ElectLeadersRequest, ctx: RequestContext, controller: Controller) -> ElectLeadersResponse:
    """Elect a leader for each partition, or return its error; for all (null), omit those that need none."""
    requested = request.topic_partitions
    if requested == []:
        return ElectLeadersResponse()
    if request.timeout_ms <= 0:
        raise ApiError(error_codes.REQUEST_TIMED_OUT)
    places = None if requested is None else [(topic.topic, topic.partitions) for topic in requested]
    elections = controller.commit(elect_leaders(controller, request.election_type, places), ctx.now_ms)
    return ElectLeadersResponse(replica_election_results=_results(elections))


def _results(elections: Elections) -> list[ReplicaElectionResult]:
    return [
        ReplicaElectionResult(
            topic=name,
            partition_result=[
                PartitionResult(partition_id=partition_id, **error_fields(refusal)) for partition_id, refusal in elected
            ],
        )
        for name, elected in elections
    ]


API = Api(
    ElectLeadersRequest,
    ElectLeadersResponse,
    handle,
    error_responses.elect_leaders,
    forwardable=True,
    operation=AclOperation.ALTER,
)
