"""Operations on the controller's state, and commands that change it as a broker or an operator would."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from types import GenericAlias
from typing import Annotated, Any, BinaryIO, get_args, get_type_hints

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from mockraft.server.admin.access import TheDouble
from mockraft.server.admin.json_bodies import (
    CHUNK_LENGTH,
    Int32,
    Int64,
    Model,
    StrictRoute,
    compact,
    in_chunks,
    in_turn,
    json_list,
    json_response,
    json_text,
    listed,
)
from mockraft.server.admin.problems import ProblemError, commanding, field_named
from mockraft.server.controller.image import Topic as ImageTopic
from mockraft.server.double import Double
from mockraft.server.events import EVENTS_MAX
from mockraft.server.events import Event as EventView
from mockraft.server.state.reading import partition_view
from mockraft.server.views import (
    BrokerView,
    ConfigView,
    LogRecord,
    PartitionView,
    QuorumView,
    SnapshotView,
    TopicView,
    View,
)
from mockraft.wire.message import Message
from mockraft.wire.uuids import text_of
from pydantic import Field, create_model


@cache
def model_of(view: type[View]) -> type[Model]:
    """Return the model of a view's JSON."""
    parts: dict[str, Any] = {name: (_modelled(hint), ...) for name, hint in get_type_hints(view).items()}
    about = (view.__doc__ or "").strip()
    return create_model(view.__name__.removesuffix("View"), __base__=Model, __doc__=about, **parts)


def _modelled(hint: object) -> object:
    """Return a type with the views and messages in it replaced by models, and tuples by lists."""
    if isinstance(hint, type) and issubclass(hint, View):
        return model_of(hint)  # type: ignore[arg-type]  # a dataclass's class is hashable, whatever its instances are
    if hint is Message:
        return dict[str, object]
    if isinstance(hint, GenericAlias):
        if hint.__origin__ is tuple:
            return list[_modelled(get_args(hint)[0])]  # type: ignore[misc]
        return hint.__origin__[tuple(map(_modelled, get_args(hint)))]  # type: ignore[index]
    return hint


Broker = model_of(BrokerView)
Event = model_of(EventView)
Partition = model_of(PartitionView)
Quorum = model_of(QuorumView)
Record = create_model("Record", __base__=model_of(LogRecord))
Snapshot = model_of(SnapshotView)
Topic = model_of(TopicView)


def list_model(name: str, model: type[Model], **more: object) -> type[Model]:
    """Return the model of a list under a name; `more` are further fields, each with its type."""
    return _model(name.capitalize(), {name: GenericAlias(list, (model,)), **more})


def _model(name: str, hints: Mapping[str, object]) -> type[Model]:
    parts: dict[str, Any] = {field: (hint, ...) for field, hint in hints.items()}
    return create_model(name, __base__=Model, **parts)


Brokers = list_model("brokers", Broker)
Events = create_model(
    "Events",
    __base__=list_model("events", Event),
    __doc__="Events of the cluster, oldest first.",
    next=(int, Field(description="The `afterId` for the events after these.")),
)
Topics = list_model("topics", Topic)
Records = create_model(
    "Records",
    __base__=list_model("records", Record),
    __doc__="Records of the metadata log.",
    from_=(int, Field(alias="from", description="Offset of the first.")),
    end_offset=(int, Field(description="Offset after the last record of the log.")),
)
Snapshots = list_model("snapshots", Snapshot)
State = _model(
    "State",
    {
        "brokers": GenericAlias(list, (Broker,)),
        "topics": GenericAlias(list, (Topic,)),
        "features": dict[str, int],
        "configs": GenericAlias(list, (model_of(ConfigView),)),
        "quorum": Quorum,
        "snapshots": GenericAlias(list, (Snapshot,)),
    },
)


OVERVIEW_BATCH = 50
"""Topics that an overview looks at in one turn."""

router = APIRouter(route_class=StrictRoute, tags=["state"])

OCTETS = "application/octet-stream"
FILE_BODY = {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}

BrokerId = Annotated[int, Path(alias="brokerId", description="Id of the broker.")]


class LogDirId(Model):
    """A log directory."""

    id: str = Field(description="The directory's id, as in the broker's view.")


class Election(Model):
    """A partition, and the replica to elect."""

    topic: str
    partition: int = Field(ge=0, le=2**31 - 1)
    leader: int | None = Field(default=None, description="A replica; default: the preferred one.")
    unclean: bool = Field(
        default=False, description="Allow a replica that is not in sync; it becomes the only one in the ISR."
    )


class TopicOverview(Model):
    """A topic, and how many of its partitions have fewer replicas in sync than replicas, or no leader."""

    name: str
    topic_id: str
    partitions: int
    under_replicated: int
    leaderless: int


class TopicOverviews(Model):
    """Topics, by name."""

    topics: list[TopicOverview]


class NodeId(Model):
    """A node of the quorum."""

    node: int


class NewRecord(Model):
    """A metadata record in Kafka's own JSON form; without a version, the fitting one is taken."""

    type: str = Field(examples=["ConfigRecord"])
    version: int | None = None
    record: dict[str, object] = Field(
        examples=[{"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "1000"}]
    )


class NewRecords(Model):
    """Records to write as one batch."""

    records: list[NewRecord] = Field(min_length=1)


@router.get("/v1/state", response_model=State)
async def get_state(double: TheDouble) -> StreamingResponse:
    """Return the whole state except the log, as it is at this moment."""
    state, show_secrets = double.state, double.state.show_secrets
    brokers = (each.to_json() for each in state.brokers_now())
    configs = (each.to_json(show_secrets=show_secrets) for each in state.configs())
    foot = compact({"quorum": state.quorum().to_json(), "snapshots": [each.to_json() for each in state.snapshots()]})
    pieces = itertools.chain(
        json_list('{"brokers":[', brokers, '],"topics":['),
        _topic_pieces(state.topics_now()),
        json_list(f'],"features":{compact(state.features())},"configs":[', configs, f"],{foot[1:]}"),
    )
    return StreamingResponse(in_chunks(pieces), media_type="application/json")


@router.get("/v1/quorum", response_model=Quorum)
async def get_quorum(request: Request, double: TheDouble) -> Response:
    """Return the leader, the voters and the observers."""
    return json_response(request, double.state.quorum().to_json())


@router.post("/v1/quorum/elect", status_code=204)
async def elect_controller(body: NodeId, double: TheDouble) -> None:
    """Make a node of the quorum a candidate now."""
    with commanding():
        double.state.elect_controller(body.node)


@router.post("/v1/quorum/resign", status_code=204)
async def resign_controller(double: TheDouble) -> None:
    """Make the active controller resign."""
    with commanding():
        double.state.resign()


@router.get("/v1/brokers", response_model=Brokers)
async def list_brokers(request: Request, double: TheDouble) -> Response:
    """List the registered brokers, by id."""
    return await listed(request, "brokers", (each.to_json() for each in double.state.brokers_now()))


@router.get("/v1/brokers/{brokerId}", response_model=Broker)
async def get_broker(broker_id: BrokerId, double: TheDouble) -> Response:
    """Return a registered broker."""
    return _broker(double, broker_id)


@router.post("/v1/brokers/{brokerId}/fence", response_model=Broker)
async def fence_broker(broker_id: BrokerId, double: TheDouble) -> Response:
    """Fence a broker; its next heartbeat without `wantFence` unfences it again."""
    return _commanded(double, broker_id, lambda: double.state.fence(broker_id))


@router.post("/v1/brokers/{brokerId}/unfence", response_model=Broker)
async def unfence_broker(broker_id: BrokerId, double: TheDouble) -> Response:
    """Unfence a broker and renew its session."""
    return _commanded(double, broker_id, lambda: double.state.unfence(broker_id))


@router.post("/v1/brokers/{brokerId}/expire-session", response_model=Broker)
async def expire_broker_session(broker_id: BrokerId, double: TheDouble) -> Response:
    """Expire a broker's session: it is fenced until its next heartbeat."""
    return _commanded(double, broker_id, lambda: double.state.expire_session(broker_id))


@router.post("/v1/brokers/{brokerId}/fail-log-dir", response_model=Broker)
async def fail_log_dir(broker_id: BrokerId, body: LogDirId, double: TheDouble) -> Response:
    """Mark a log directory as offline, as if the broker had reported it."""
    return _commanded(double, broker_id, lambda: double.state.fail_log_dir(broker_id, body.id))


@router.post("/v1/brokers/{brokerId}/unregister", status_code=204)
async def unregister_broker(broker_id: BrokerId, double: TheDouble) -> None:
    """Unregister a broker, as UnregisterBroker does."""
    _broker(double, broker_id)
    with commanding():
        double.state.unregister(broker_id)


@router.get("/v1/events", response_model=Events)
async def list_events(
    request: Request,
    double: TheDouble,
    after_id: Annotated[
        Int64 | None, Query(alias="afterId", description="Only events with a greater id.", ge=0)
    ] = None,
    limit: Annotated[
        int,
        Query(description="Maximum number: the newest, or with `afterId` the oldest after it.", ge=1, le=EVENTS_MAX),
    ] = 100,
    broker_id: Annotated[Int32 | None, Query(alias="brokerId", description="Only events of this broker.", ge=0)] = None,
) -> Response:
    """List what happened to brokers, topics, controllers and faults, and why; the newest 2,000 events are kept."""
    found = double.script.events.find(after_id, limit, broker_id)
    tree = {"events": [each.to_json() for each in found], "next": found[-1].id if found else after_id or 0}
    return json_response(request, tree)


@router.get("/v1/topics", response_model=Topics)
async def list_topics(
    double: TheDouble,
    names: Annotated[list[str] | None, Query(alias="name", description="Only topics of these names.")] = None,
) -> StreamingResponse:
    """List the topics with their partitions, by name, as they are at this moment."""
    topics = double.state.topics_now()
    if names is not None:
        topics = [each for each in topics if each.name in names]
    pieces = itertools.chain([b'{"topics":['], _topic_pieces(topics), [b"]}"])
    return StreamingResponse(in_chunks(pieces), media_type="application/json")


@router.get("/v1/topics/overview", response_model=TopicOverviews)
async def list_topic_overviews(request: Request, double: TheDouble) -> Response:
    """List the topics by name, each with the numbers of its partitions in each state."""
    found: list[TopicOverview] = []
    topics = iter(double.state.topics_now())

    def add() -> int:
        batch = list(map(_overview, itertools.islice(topics, OVERVIEW_BATCH)))
        found.extend(batch)
        return len(batch)

    while await in_turn(add):
        pass
    return await listed(request, "topics", (each.model_dump(by_alias=True) for each in found))


@router.post("/v1/elections", response_model=Partition)
async def elect_leader(body: Election, double: TheDouble) -> Response:
    """Elect a replica of a partition; return the partition after that."""
    with commanding():
        found = double.state.elect(body.topic, body.partition, body.leader, unclean=body.unclean)
    return json_text(found.to_json())


@router.get("/v1/records", response_model=Records)
async def list_records(
    double: TheDouble,
    from_offset: Annotated[
        Int64, Query(alias="from", description="A negative one counts from the end.", ge=-(1 << 63))
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> StreamingResponse:
    """Return records of the metadata log that no snapshot has replaced, control records included, as Kafka's JSON."""
    found = double.state.metadata_log(from_offset, limit)
    end = double.state.quorum().log_end_offset
    first = found[0].offset if found else max(0, min(from_offset, end))

    head = f'{{"from":{first},"endOffset":{end},"records":['
    pieces = json_list(head, (each.to_json(show_secrets=double.state.show_secrets) for each in found), "]}")
    return StreamingResponse(in_chunks(pieces), media_type="application/json")


@router.post("/v1/records", status_code=201, response_model=Records)
async def append_records(body: NewRecords, double: TheDouble) -> Response:
    """Write metadata records as one batch: all of them, or none if one does not fit the state."""
    trees = [each.model_dump(by_alias=True, exclude_none=True) for each in body.records]
    try:
        with field_named():
            written = double.state.append(trees)
    except RuntimeError as error:
        raise ProblemError(409, str(error)) from error
    end = double.state.quorum().log_end_offset
    shown = [each.to_json(show_secrets=double.state.show_secrets) for each in written]
    tree = {"from": written[0].offset, "endOffset": end, "records": shown}
    return json_text(tree, 201)


@router.get("/v1/snapshots", response_model=Snapshots)
async def list_snapshots(request: Request, double: TheDouble) -> Response:
    """List the snapshots that are kept, oldest first."""
    return json_response(request, {"snapshots": [each.to_json() for each in double.state.snapshots()]})


@router.post("/v1/snapshots", status_code=201, response_model=Snapshot)
async def write_snapshot(double: TheDouble) -> Response:
    """Write a snapshot of everything committed; return the newest one if nothing is new."""
    with commanding():
        found = double.state.snapshot()
    return json_text(found.to_json(), 201)


@router.get("/v1/state/file", response_class=Response, responses={200: FILE_BODY})
async def save_state(request: Request, double: TheDouble) -> Response:
    """Return the whole state as a snapshot file in Kafka's format: for PUT, `Controller(state=…)` and Kafka's tools."""
    async with request.app.state.saving:  # one at a time: each has records of the whole state
        with tempfile.TemporaryDirectory(prefix="mockraft-state-") as folder:
            path = FilePath(folder) / "state.checkpoint"
            with commanding():
                save = double.state.saving()
                await asyncio.to_thread(save, path)
            file = path.open("rb")
    return StreamingResponse(_pieces(file), media_type=OCTETS)


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := file.read(CHUNK_LENGTH):
            yield piece


@router.put("/v1/state/file", status_code=204, openapi_extra={"requestBody": {"required": True, **FILE_BODY}})
async def load_state(request: Request, double: TheDouble) -> None:
    """Restart with a saved state; connections break. Not with a data directory, and not in a quorum."""
    data = await request.body()
    with tempfile.TemporaryDirectory(prefix="mockraft-state-") as folder:
        path = FilePath(folder) / "state.checkpoint"
        await asyncio.to_thread(path.write_bytes, data)
        with commanding():
            double.load(path)


def _topic_pieces(topics: Iterable[ImageTopic]) -> Iterator[bytes]:
    """Yield the texts of topics in a list, a partition at a time."""
    comma = ""
    for topic in topics:
        head = compact(TopicView(topic.name, text_of(topic.topic_id), ()).to_json())
        trees = (partition_view(number, topic.partitions[number]).to_json() for number in sorted(topic.partitions))
        yield from json_list(comma + head.removesuffix("]}"), trees, "]}")
        comma = ","


def _overview(topic: ImageTopic) -> TopicOverview:
    partitions = topic.partitions.values()
    return TopicOverview(
        name=topic.name,
        topic_id=text_of(topic.topic_id),
        partitions=len(partitions),
        under_replicated=sum(len(each.isr) < len(each.replicas) for each in partitions),
        leaderless=sum(each.leader < 0 for each in partitions),
    )


def _broker(double: Double, broker_id: int) -> Response:
    try:
        tree = double.state.broker(broker_id).to_json()
    except ValueError as error:
        raise ProblemError(404, str(error), parameter="brokerId") from error
    return json_text(tree)


def _commanded(double: Double, broker_id: int, command: Callable[[], None]) -> Response:
    _broker(double, broker_id)
    with commanding():
        command()
    return _broker(double, broker_id)
