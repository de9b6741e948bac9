"""The differences between two metadata images, in Kafka's words and without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from mockraft.kafka_configs import config_keys
from mockraft.releases import METADATA_VERSION, Behaviour
from mockraft.server.controller.image import Image
from mockraft.server.controller.image.cluster import BrokerRegistration, ControllerRegistration
from mockraft.server.controller.image.topics import NO_LEADER, Partition, Topic
from mockraft.server.controller.topics.partition_rules import min_isr_in
from mockraft.twin.history import History, Moment, records_of
from mockraft.wire import uuids
from mockraft.wire.json_form import Json
from mockraft.wire.printable import printable_line
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.redaction.masks import HIDDEN
from mockraft.wire.redaction.secret_fields import is_sensitive

_CONFIG_TYPES: Final = {
    config_keys.TOPIC: "topic",
    config_keys.BROKER: "broker",
    config_keys.BROKER_LOGGER: "broker logger",
    config_keys.CLIENT_METRICS: "client metrics",
    config_keys.GROUP: "group",
}
_UNSET: Final = "(unset)"
_NAMES_MAX: Final = 20
_MIN_ISR: Final = "min.insync.replicas"

K = TypeVar("K")
V = TypeVar("V")


class Change(NamedTuple):
    """One difference: what of a subject was `before` and is `after`; None is absent."""

    subject: str
    what: str
    before: Json
    after: Json

    def __str__(self) -> str:
        text = f"{self.subject}: {self.what}"
        if self.before is not None:
            text += f" {_text(self.before)} → {_text(self.after)}"
        elif self.after is not True:
            text += f" {_text(self.after)}"
        return printable_line(text)

    def to_json(self) -> dict[str, Json]:
        """Return the change as a JSON object."""
        return self._asdict()


def changes(before: Image, after: Image) -> list[Change]:
    """Return what differs: features, brokers, controllers, topics, partitions, configs, quotas, security."""
    return [
        *_features(before, after),
        *_brokers(before, after),
        *_controllers(before, after),
        *_topics(before, after),
        *_min_isr(before, after),
        *_configs(before, after),
        *_quotas(before, after),
        *_security(before, after),
    ]


class Applied(NamedTuple):
    """The records of a batch or transaction, which brokers apply at once: the first offset, and the last with its time.

    The last is that of the moment if this ends inside the batch.
    """

    first_offset: int
    offset: int
    timestamp_ms: int

    @property
    def offsets(self) -> str:
        """The offsets as text."""
        return f"{self.first_offset}–{self.offset}" if self.first_offset < self.offset else f"{self.offset}"


def each_change(history: History, before: Moment, after: Moment) -> Iterator[tuple[Applied, Change]]:
    """Yield each change between two moments of a history, with the records of the batch or transaction that made it.

    The image of `before` becomes that of `after`.
    """
    image, began = before.image, None
    for header, data in history.batches:
        if header.last_offset < before.id.end_offset or header.base_offset >= after.id.end_offset:
            continue
        records = [at for at in records_of(header, data) if before.id.end_offset <= at.offset < after.id.end_offset]
        if all(isinstance(at.record, NoOpRecord) for at in records):
            continue
        was = image.copy()
        for at in records:
            image.apply(at.record, at.offset)
        first_offset = header.base_offset if began is None else began
        began = first_offset if image.open_transaction is not None else None
        applied = Applied(first_offset, records[-1].offset, records[-1].timestamp_ms)
        has_shutdowns = was.has(Behaviour.CONTROLLED_SHUTDOWN_STATE)
        for broker_id, old, new in _pairs(was.cluster.brokers, image.cluster.brokers) if has_shutdowns else ():
            if old and new and old.incarnation_id != new.incarnation_id and not old.in_controlled_shutdown:
                yield applied, Change(f"broker {broker_id}", "restarted without a controlled shutdown", None, True)
        for change in changes(was, image):
            yield applied, change


def _features(before: Image, after: Image) -> Iterator[Change]:
    for name, old, new in _pairs(before.features, after.features):
        yield Change(f"feature {name}", "level", old or 0, new or 0)


def _brokers(before: Image, after: Image) -> Iterator[Change]:
    for broker_id, old, new in _pairs(before.cluster.brokers, after.cluster.brokers):
        subject = f"broker {broker_id}"
        if old is None or new is None:
            yield Change(subject, "unregistered" if new is None else "registered", None, True)
        if new is not None:
            yield from _fields(subject, _broker_fields(old), _broker_fields(new), is_new=old is None)
        if old is not None and new is not None:
            for directory_id in [each for each in old.log_dirs if each not in new.log_dirs]:
                what = f"directory {uuids.text_of(directory_id)}"
                yield Change(
                    subject,
                    what,
                    None,
                    f"not registered any more: offline, or removed; it had {_held(before, broker_id, directory_id)}",
                )


def _held(image: Image, broker_id: int, directory_id: bytes) -> str:
    """Return the partitions that are assigned to a broker's directory, the first ones by name."""
    names = [
        f"{topic.name}-{partition_id}"
        for topic in image.topics.by_id.values()
        for partition_id, partition in topic.partitions.items()
        if broker_id in partition.replicas and partition.directory(broker_id) == directory_id
    ]
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return (", ".join(names[:_NAMES_MAX]) or "no partition") + more


def _broker_fields(broker: BrokerRegistration | None) -> dict[str, Json]:
    if broker is None:
        return {}
    if broker.in_controlled_shutdown:
        state = "fenced after a controlled shutdown" if broker.fenced else "in controlled shutdown"
    else:
        state = "fenced" if broker.fenced else "unfenced"
    return {
        "state": state,
        "broker epoch": broker.broker_epoch,
        "incarnation": uuids.text_of(broker.incarnation_id),
        "rack": broker.rack,
        "listeners": [f"{each.name}://{each.host}:{each.port}" for each in broker.endpoints],
        "directories": [uuids.text_of(each) for each in broker.log_dirs],
        "cordoned directories": [uuids.text_of(each) for each in broker.cordoned_log_dirs or ()],
        "supported features": _supported(broker),
    }


def _controllers(before: Image, after: Image) -> Iterator[Change]:
    for node_id, old, new in _pairs(before.cluster.controllers, after.cluster.controllers):
        subject = f"controller {node_id}"
        if old is None or new is None:
            yield Change(subject, "unregistered" if new is None else "registered", None, True)
        if new is not None:
            yield from _fields(subject, _controller_fields(old), _controller_fields(new), is_new=old is None)


def _controller_fields(controller: ControllerRegistration | None) -> dict[str, Json]:
    if controller is None:
        return {}
    return {
        "incarnation": uuids.text_of(controller.incarnation_id),
        "listeners": [f"{each.name}://{each.host}:{each.port}" for each in controller.endpoints],
        "supported features": _supported(controller),
    }


def _supported(node: BrokerRegistration | ControllerRegistration) -> dict[str, Json]:
    """Return the ranges of a node's features, metadata.version first."""
    ranges = sorted(node.features.items(), key=lambda each: (each[0] != METADATA_VERSION, each[0]))
    return {name: [each.min_version, each.max_version] for name, each in ranges}


def _topics(before: Image, after: Image) -> Iterator[Change]:
    for _, old, new in sorted(_pairs(before.topics.by_id, after.topics.by_id), key=_name_of):
        topic = new or old
        assert topic is not None
        subject = f"topic {topic.name}"
        if new is None:
            yield Change(subject, "deleted", None, True)
            continue
        if old is None:
            factor = max((len(each.replicas) for each in new.partitions.values()), default=0)
            about = (
                f"with {len(new.partitions)} partitions, replication factor {factor}, id {uuids.text_of(new.topic_id)}"
            )
            yield Change(subject, "created", None, about)
            yield from _unavailable(after, new)
            continue
        for partition_id, was, now in _pairs(old.partitions, new.partitions):
            if now is not None:
                fields = {} if was is None else _partition_fields(was)
                yield from _fields(f"{subject} partition {partition_id}", fields, _partition_fields(now))


def _unavailable(image: Image, topic: Topic) -> Iterator[Change]:
    """Yield what a new topic's partitions lack: a leader, or in-sync replicas."""
    least = min_isr_in(image, topic) if topic.partitions else 0
    for partition_id, partition in topic.partitions.items():
        subject = f"topic {topic.name} partition {partition_id}"
        if partition.leader == NO_LEADER:
            yield Change(subject, "leader", None, "none")
        elif _in_sync(partition, least):
            isr = _text([*partition.isr])
            yield Change(subject, "ISR", None, f"{isr}, fewer than the {least} of {_MIN_ISR}")


def _min_isr(before: Image, after: Image) -> Iterator[Change]:
    """Yield the partitions that fell below min.insync.replicas, or reach it again, also by a change of this config."""
    all_topics = (config_keys.BROKER, "")
    is_default_equal = before.configs.get(all_topics) == after.configs.get(all_topics)
    for topic_id, new in after.topics.by_id.items():
        old, own = before.topics.by_id.get(topic_id), (config_keys.TOPIC, new.name)
        if old is None or (old == new and is_default_equal and before.configs.get(own) == after.configs.get(own)):
            continue
        if not old.partitions or not new.partitions:
            continue
        least, wanted = min_isr_in(before, old), min_isr_in(after, new)
        for partition_id, partition in new.partitions.items():
            was = old.partitions.get(partition_id, partition)
            texts = [_in_sync(was, least), _in_sync(partition, wanted)]
            if ("" in texts) and texts[0] != texts[1]:
                subject = f"topic {new.name} partition {partition_id}"
                yield Change(subject, _MIN_ISR, *(f"not met ({each})" if each else "met" for each in texts))


def _in_sync(partition: Partition, least: int) -> str:
    """Return what a partition below min.insync.replicas has, else nothing."""
    return f"{len(partition.isr)} of {least} in sync" if len(partition.isr) < least else ""


def _name_of(pair: tuple[bytes, Topic | None, Topic | None]) -> str:
    topic = pair[2] or pair[1]
    return "" if topic is None else topic.name


def _partition_fields(partition: Partition) -> dict[str, Json]:
    return {
        "leader": "none" if partition.leader == NO_LEADER else partition.leader,
        "leader epoch": partition.leader_epoch,
        "ISR": list(partition.isr),
        "replicas": list(partition.replicas),
        "adding replicas": list(partition.adding_replicas),
        "removing replicas": list(partition.removing_replicas),
        "ELR": list(partition.elr),
        "last known ELR": list(partition.last_known_elr),
        "leader recovery": "recovering" if partition.leader_recovery_state else "recovered",
        "directories": [uuids.text_of(each) for each in partition.directories],
    }


def _configs(before: Image, after: Image) -> Iterator[Change]:
    for (kind, name), old, new in _pairs(before.configs, after.configs):
        subject = f"config of {_CONFIG_TYPES.get(kind, kind)} {name or '(default)'}"
        for key, was, now in _pairs(old or {}, new or {}):
            default = config_keys.keys(kind).get(key)
            unset = (
                _UNSET
                if default is None or default.default is None
                else f"(unset; Kafka's default is {default.default})"
            )
            shown = [unset if each is None else HIDDEN if is_sensitive(key) else each for each in (was, now)]
            yield Change(subject, key, *shown)


def _quotas(before: Image, after: Image) -> Iterator[Change]:
    for entity, old, new in _pairs(before.settings.client_quotas, after.settings.client_quotas):
        about = ", ".join(f"{kind} {name if name is not None else '(default)'}" for kind, name in entity)
        for key, was, now in _pairs(old or {}, new or {}):
            yield Change(f"quota of {about}", key, *(_UNSET if each is None else each for each in (was, now)))


def _security(before: Image, after: Image) -> Iterator[Change]:
    for _, old, new in _pairs(before.security.acls, after.security.acls):
        acl = new or old
        if acl is not None:
            about = (
                f"{acl.principal} from {acl.host}, permission {acl.permission_type}, operation {acl.operation},"
                f" resource {acl.resource_type} {acl.resource_name} (pattern {acl.pattern_type})"
            )
            yield Change("ACL", "removed" if new is None else "added", None, about)
    for (mechanism, user), was, now in _pairs(before.security.scram, after.security.scram):
        what = "removed" if now is None else "set" if was is None else "changed"
        yield Change(f"SCRAM credential {mechanism} of {user}", what, None, True)
    for _, was_token, token in _pairs(before.security.delegation_tokens, after.security.delegation_tokens):
        found = token or was_token
        if found is not None:
            what = "removed" if token is None else "issued" if was_token is None else "renewed"
            yield Change(f"delegation token of {found.owner}", what, None, True)


def _fields(
    subject: str, before: Mapping[str, Json], after: Mapping[str, Json], *, is_new: bool = False
) -> Iterator[Change]:
    for what, value in after.items():
        was = before.get(what)
        if was != value and not (is_new and value in (None, [], {})):
            yield Change(subject, what, was if before else None, value)


def _pairs(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """Yield each key whose values differ with both of them, in order."""
    order: Callable[[Any], Any] = lambda key: str(key).zfill(12) if isinstance(key, int) else str(key)  # noqa: E731
    for key in sorted((key for key in {*before, *after} if before.get(key) != after.get(key)), key=order):
        yield key, before.get(key), after.get(key)


def _text(value: Json) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items()) or "none"
    return "none" if value is None else str(value)
