"""Error responses that name the items of a request: getErrorResponse of Kafka's request classes.

Those of APIs that both controllers and brokers have look for their classes when they are called: otherwise the first
request for CreateTopics would wait until the messages of twelve other APIs are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mockraft.kafka_api.api import ResponseT
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message, Struct, field_names, item_class
from mockraft.wire.messages.elect_leaders_response import ElectLeadersResponse

if TYPE_CHECKING:
    from mockraft.wire.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
    from mockraft.wire.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
    from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
    from mockraft.wire.messages.delete_topics_response import DeleteTopicsResponse


class Items(NamedTuple):
    """A list in a request and the list for it in the response, whose items have the fields `names` in common.

    Values that are no structs, such as numbers of partitions, become the only field of `names`.
    """

    asked: str
    results: str
    names: tuple[str, ...] = ()


def error_for_each(
    response: type[ResponseT], *levels: Items, **fixed: int
) -> Callable[[Message, int, str | None], ResponseT]:
    """Return the error form with these lists, each inside the items of the one before it.

    The error, its message and `fixed` are in all parts of the response that have such fields.
    """

    def error(request: Message, error_code: int, message: str | None) -> ResponseT:
        errors = {"error_code": error_code, "error_message": message, **fixed}
        failed: ResponseT = _failed(response, request, levels, errors)
        return failed

    return error


def _for_each(*levels: Items) -> Callable[[Message, int, str | None], Any]:
    """Return the error form of an API whose response class is looked for when the form is used."""
    return lambda request, error_code, message: error_for_each(messages.response(request.api_key), *levels)(
        request, error_code, message
    )


def _failed(cls: type[Struct], asked: Any, levels: Sequence[Items], errors: dict[str, Any], **names: Any) -> Any:
    fields = {name: value for name, value in errors.items() if name in field_names(cls)}
    if levels:
        level, *inner = levels
        item = item_class(cls, level.results)
        fields[level.results] = [
            _failed(item, each, inner, errors, **_named(each, level.names))
            for each in getattr(asked, level.asked) or ()
        ]
    made: Callable[..., Any] = cls
    return made(**fields, **names)


def _named(item: Any, names: Sequence[str]) -> dict[str, Any]:
    if isinstance(item, int | str):
        return {names[0]: item}
    return {name: getattr(item, name) for name in names}


_RESOURCE = ("resource_type", "resource_name")

alter_configs = _for_each(Items("resources", "responses", _RESOURCE))
incremental_alter_configs = alter_configs
create_acls = _for_each(Items("creations", "results"))
delete_acls = _for_each(Items("filters", "filter_results"))
create_partitions = _for_each(Items("topics", "results", ("name",)))
create_topics = _for_each(Items("topics", "topics", ("name",)))
alter_partition_reassignments = _for_each(
    Items("topics", "responses", ("name",)), Items("partitions", "partitions", ("partition_index",))
)
list_partition_reassignments = _for_each(
    Items("topics", "topics", ("name",)), Items("partition_indexes", "partitions", ("partition_index",))
)
describe_user_scram_credentials = _for_each(Items("users", "results"))
_alter_client_quotas = _for_each(Items("entries", "entries"), Items("entity", "entity", ("entity_type", "entity_name")))


def alter_client_quotas(request: Message, error_code: int, _message: str | None) -> Any:
    """Return the error for each entry of the request, with the code's default message."""
    return _alter_client_quotas(request, error_code, error_codes.message(error_code))


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


class _ElectLeadersError(ElectLeadersResponse):
    """A response whose version 0 reports the error in the partitions only: it has no top-level error code."""

    __slots__ = ()

    def write(self, version: int) -> bytes:
        if version == 0:
            return ElectLeadersResponse(replica_election_results=self.replica_election_results).write(version)
        return super().write(version)


_elect_leaders = error_for_each(
    ElectLeadersResponse,
    Items("topic_partitions", "replica_election_results", ("topic",)),
    Items("partitions", "partition_result", ("partition_id",)),
)


def elect_leaders(request: Message, error_code: int, message: str | None) -> ElectLeadersResponse:
    """Return the error for the request and for each of its partitions."""
    results = _elect_leaders(request, error_code, message).replica_election_results
    return _ElectLeadersError(error_code=error_code, replica_election_results=results)
