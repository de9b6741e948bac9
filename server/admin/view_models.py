"""Models of the state's views, derived from the views themselves, so that each is described once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import GenericAlias
from typing import Any, get_args, get_type_hints

from mockraft.server.admin.json_bodies import Model
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
Partition = model_of(PartitionView)
Quorum = model_of(QuorumView)
Record = create_model("Record", __base__=model_of(LogRecord))
Snapshot = model_of(SnapshotView)
Topic = model_of(TopicView)


def listed(name: str, model: type[Model], **more: object) -> type[Model]:
    """Return the model of a list under a name; `more` are further fields, each with its type."""
    return _model(name.capitalize(), {name: GenericAlias(list, (model,)), **more})


def _model(name: str, hints: Mapping[str, object]) -> type[Model]:
    parts: dict[str, Any] = {field: (hint, ...) for field, hint in hints.items()}
    return create_model(name, __base__=Model, **parts)


Brokers = listed("brokers", Broker)
Topics = listed("topics", Topic)
Records = create_model(
    "Records",
    __base__=listed("records", Record),
    __doc__="Records of the metadata log.",
    from_=(int, Field(alias="from", description="Offset of the first.")),
    end_offset=(int, Field(description="Offset after the last record of the log.")),
)
Snapshots = listed("snapshots", Snapshot)
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
