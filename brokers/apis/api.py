"""The APIs of a broker's client listener: the shared base with broker handlers, and the context that handlers get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from mockraft.brokers.assignments import ReplicaKey
from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.coordinators.group_coordinator import GroupCoordinator
from mockraft.brokers.coordinators.transactions import TransactionCoordinator
from mockraft.brokers.coordinators.verification import Verifier
from mockraft.brokers.directories import Directories
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.log_dirs.logs import Logs
from mockraft.brokers.metadata.observer import Observer
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.shares.leaders import Leaders
from mockraft.brokers.shares.shares import Shares
from mockraft.kafka_api import api as serving_api
from mockraft.kafka_api.api import ConnectionClosedError as ConnectionClosedError
from mockraft.kafka_api.api import Parked as Parked
from mockraft.kafka_api.authorization.acl_types import CLUSTER_NAME, DENIED, AclOperation, ResourceType
from mockraft.kafka_api.authorization.authorizer import host_text
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError as ApiError
from mockraft.wire.message import Message

if TYPE_CHECKING:
    import random

    from mockraft.wire.message import RequestMessage

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)
T = TypeVar("T")

NO_RESPONSE: Final = b""
"""Result of a handler that sends nothing (Produce with acks=0)."""


def parked(deadline_ms: int, retry: Callable[[int, bool], T | Parked[T] | None]) -> Parked[T]:
    """Return a wait that may end in another one, as a listener allows."""
    return Parked(deadline_ms, cast("Callable[[int, bool], T | None]", retry))


def invalid(message: str) -> ApiError:
    """Return the refusal of a request that is not as it must be."""
    return ApiError(error_codes.INVALID_REQUEST, message)


class Need(NamedTuple):
    """An operation that a client must be allowed for a whole request, on the resource that a field names.

    Without a field it is the cluster.
    """

    operation: AclOperation
    resource_type: ResourceType = ResourceType.CLUSTER
    field: str = ""


READ_GROUP: Final = Need(AclOperation.READ, ResourceType.GROUP, "group_id")
WRITE_TRANSACTIONAL_ID: Final = Need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")


@dataclass(frozen=True, slots=True)
class Api(serving_api.Api[RequestT, ResponseT]):
    """One API of a broker.

    `handle(request, ctx)` returns the response message (or its bytes in the request's version), NO_RESPONSE or
    `Parked`, or raises `ApiError` or `ConnectionClosedError`; a parked request's `retry` may raise them, too.
    `forwarded`: a controller answers, so only versions that the controller has too are offered. `replicas` are those
    whose disks the request uses: a slow disk delays it. `needs` are checked before the request is handled; handlers
    check what depends on more of the request, such as topics.
    """

    handle: Callable[[RequestT, RequestContext], ResponseT | bytes | Parked[ResponseT | bytes]]
    forwarded: bool = False
    replicas: Callable[[RequestT, RequestContext], Iterable[ReplicaKey]] | None = None
    needs: tuple[Need, ...] = ()

    def answer(self, request: RequestT, ctx: RequestContext) -> ResponseT | bytes | Parked[ResponseT | bytes]:
        """Handle a request of a client that may send it."""
        for operation, resource_type, name in self.needs:
            ctx.check(operation, resource_type, getattr(request, name) if name else CLUSTER_NAME)
        return self.handle(request, ctx)


AnyApi: TypeAlias = Api[Any, Any]
"""An API of unknown message classes, as in the registry."""


class Forwarder(Protocol):
    """The way to the controller: `brokers.forwarding`."""

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """The controller's API versions, (min, max) by API key; None while the channel is not open."""

    def forward(self, api: AnyApi, ctx: RequestContext, frame: bytes | None = None) -> Parked[bytes]:
        """Send a client's request to the controller; the result is the body of its response."""

    def send(self, request: RequestMessage[ResponseT], answered: Callable[[ResponseT | ApiError], None]) -> None:
        """Send a request of the broker's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """The components of a broker that handlers use; handlers do not start or close them, and have no broker.

    `apis` are those that it serves, by key. `create_topics(names, ctx)` requests topics from the controller and returns
    at once, without `ctx` in the broker's own name; `start_move(topic, partition, path)` raises MoveRefusedError. `rng`
    is the handlers' random generator.
    """

    apis: dict[int, AnyApi]
    config: BrokerConfig
    image: ClusterImage
    observer: Observer
    logs: Logs
    directories: Directories
    replicas: Replicas
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verifier: Verifier
    shares: Shares
    share_leaders: Leaders
    producer_ids: ProducerIds
    forwarding: Forwarder
    create_topics: Callable[[Iterable[str], RequestContext | None], None]
    start_move: Callable[[str, int, str], object]
    rng: random.Random


@dataclass(slots=True)
class RequestContext(serving_api.RequestContext):
    """Context of a client's request to a broker. `now_ms` is also the append time of records."""

    broker: BrokerView

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return True if the client may do this with the resource; without an authorizer it may do everything."""
        authorizer = self.broker.config.authorizer
        if authorizer is None:
            return True
        acls, host = self.image.acl_index, host_text(self.client_address)
        return authorizer.allows(acls, self.principal, host, operation, resource_type, name)

    def may_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return True if the client may do this with some resource of the type, there or not."""
        return any(self.may(operation, resource_type, name) for name in self.image.acl_index.examples(resource_type))

    def check(self, operation: AclOperation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> None:
        """Raise ApiError, with the code for the type of the resource, unless the client may do this with it."""
        if not self.may(operation, resource_type, name):
            raise ApiError(DENIED[resource_type])

    @property
    def image(self) -> ClusterImage:
        """The cluster's committed metadata as this broker knows it now."""
        return self.broker.image
