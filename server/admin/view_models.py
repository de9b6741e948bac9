"""Models of the state's views, derived from the views themselves, so that each is described once."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from types import GenericAlias
from typing import Any, get_args, get_type_hints

from mockraft.server.admin.json_bodies import Model
from mockraft.server.state.views import (
    BrokerView,
    ConfigView,
    LogRecord,
    PartitionView,
    QuorumView,
    SnapshotView,
    TopicView,
    View,
)
from pydantic import create_model


@cache
def model_of(view: type[View]) -> type[Model]:
    """Return the model of a view's JSON."""
    hints = get_type_hints(view)
    parts: dict[str, Any] = {each.name: (_modelled(hints[each.name]), ...) for each in fields(view)}  # type: ignore[arg-type]
    about = (view.__doc__ or "").strip()
    return create_model(view.__name__.removesuffix("View"), __base__=Model, __doc__=about, **parts)


def _modelled(hint: Any) -> Any:
    """Return a type with the views in it replaced by their models, and tuples by lists."""
    if isinstance(hint, type) and issubclass(hint, View):
        return model_of(hint)  # type: ignore[arg-type]  # a dataclass's class is hashable, whatever its instances are
    if isinstance(hint, GenericAlias):
        if hint.__origin__ is tuple:
            return list[_modelled(get_args(hint)[0])]  # type: ignore[misc]
        return hint.__origin__[tuple(map(_modelled, get_args(hint)))]  # type: ignore[index]
    return hint


Broker: Any = model_of(BrokerView)
Config: Any = model_of(ConfigView)
Partition: Any = model_of(PartitionView)
Quorum: Any = model_of(QuorumView)
Record: Any = create_model("Record", __base__=model_of(LogRecord), record=(dict[str, Any], ...))
Snapshot: Any = model_of(SnapshotView)
Topic: Any = model_of(TopicView)


def listed(name: str, model: Any, **more: Any) -> Any:
    """Return the model of a list under a name; `more` are further fields, each with its type."""
    parts: dict[str, Any] = {name: (list[model], ...), **{key: (hint, ...) for key, hint in more.items()}}
    return create_model(name.capitalize(), __base__=Model, **parts)


Brokers: Any = listed("brokers", Broker)
Topics: Any = listed("topics", Topic)
Snapshots: Any = listed("snapshots", Snapshot)
State: Any = create_model(
    "State",
    __base__=Model,
    brokers=(list[Broker], ...),
    topics=(list[Topic], ...),
    features=(dict[str, int], ...),
    configs=(list[Config], ...),
    quorum=(Quorum, ...),
    snapshots=(list[Snapshot], ...),
)
