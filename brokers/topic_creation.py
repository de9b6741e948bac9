"""Automatic topic creation on request (DefaultAutoTopicCreationManager, KRaftTopicCreator)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from mockraft.brokers.apis.api import RequestContext
from mockraft.brokers.config import REQUEST_TIMEOUT_MS
from mockraft.brokers.forwarding import Forwarding, envelope_of
from mockraft.brokers.image import ClusterImage
from mockraft.kafka_api.refusals import SHOWN_MAX
from mockraft.wire import api_keys, error_codes, topic_names
from mockraft.wire.connection import write_request
from mockraft.wire.errors import ApiError, WireError
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mockraft.wire.messages.create_topics_response import CreateTopicsResponse
from mockraft.wire.messages.envelope_response import EnvelopeResponse
from mockraft.wire.printable import printable_line

NUM_PARTITIONS: Final = "num.partitions"
DEFAULT_REPLICATION_FACTOR: Final = "default.replication.factor"
_UNSAID: Final = -1

_SEGMENT_BYTES: Final = "104857600"
_INTERNAL: Final = {
    topic_names.GROUP_METADATA: "offsets.topic",
    topic_names.TRANSACTION_STATE: "transaction.state.log",
    topic_names.SHARE_GROUP_STATE: "share.coordinator.state.topic",
}
"""Prefix of the properties of Kafka's internal topics."""

_log = logging.getLogger(__name__)


class TopicCreation:
    """Requests topics from the controller, each once at a time, without waiting. `in_flight` are their names."""

    def __init__(self, forwarding: Forwarding, image: ClusterImage, properties: Mapping[str, str]) -> None:
        self.in_flight: set[str] = set()
        self._forwarding = forwarding
        self._image = image
        self._properties = properties

    def create(self, names: Iterable[str], ctx: RequestContext | None) -> None:
        """Create these topics, except those in flight: for the requesting client, or in the broker's own name."""
        new = [name for name in names if name not in self.in_flight]
        if not new:
            return
        self.in_flight.update(new)
        request = CreateTopicsRequest(
            topics=[creatable(name, self._properties, len(self._image.alive())) for name in new],
            timeout_ms=int(self._properties.get(*REQUEST_TIMEOUT_MS)),
        )
        if ctx is None:

            def created(response: CreateTopicsResponse | ApiError) -> None:
                self.in_flight.difference_update(new)
                if isinstance(response, ApiError):
                    _log.warning("topics were not created: %s", error_codes.name(response.error_code))
                else:
                    _log_refused_topics(response)

            self._forwarding.send(request, created)
            return
        version = CreateTopicsRequest.max_version
        if (theirs := self._forwarding.api_versions) is not None:
            version = min(version, theirs.get(api_keys.CREATE_TOPICS, (0, version))[1])
        frame = write_request(request, version, ctx.correlation_id, ctx.header.client_id)[4:]

        def answered(response: EnvelopeResponse | ApiError) -> None:
            self.in_flight.difference_update(new)
            _log_refusals(response, version)

        self._forwarding.send(envelope_of(frame, ctx), answered)


def _log_refusals(response: EnvelopeResponse | ApiError, version: int) -> None:
    if response.error_code:
        _log.warning("topics were not created: %s", error_codes.name(response.error_code))
        return
    assert isinstance(response, EnvelopeResponse)
    try:
        created = CreateTopicsResponse.read((response.response_data or b"")[5:], version)
    except WireError as error:
        _log.warning("topics were not created: %s", error)
        return
    _log_refused_topics(created)


def _log_refused_topics(created: CreateTopicsResponse) -> None:
    for topic in created.topics:
        if topic.error_code:
            name = error_codes.name(topic.error_code)
            about = f"topic {topic.name} was not created: {name}: {topic.error_message}"
            _log.warning("%s", printable_line(about, SHOWN_MAX))


def creatable(name: str, properties: Mapping[str, str], brokers: int) -> CreatableTopic:
    """Return the topic by the broker's server.properties; the controller chooses unset numbers.

    Internal topics have three replicas as in Kafka, but in a cluster of fewer brokers as many as there are.
    """
    if name not in _INTERNAL:
        return CreatableTopic(
            name=name,
            num_partitions=int(properties.get(NUM_PARTITIONS, _UNSAID)),
            replication_factor=int(properties.get(DEFAULT_REPLICATION_FACTOR, _UNSAID)),
        )
    prefix = _INTERNAL[name]
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": properties.get(f"{prefix}.segment.bytes", _SEGMENT_BYTES),
    }
    if name == topic_names.TRANSACTION_STATE:
        configs = {
            **configs,
            "compression.type": "uncompressed",
            "min.insync.replicas": properties.get(f"{prefix}.min.isr", "2"),
            "unclean.leader.election.enable": "false",
        }
    elif name == topic_names.SHARE_GROUP_STATE:
        configs = {
            **configs,
            "cleanup.policy": "delete",
            "min.insync.replicas": properties.get(f"{prefix}.min.isr", "2"),
            "retention.ms": "-1",
        }
    return CreatableTopic(
        name=name,
        num_partitions=int(properties.get(f"{prefix}.num.partitions", 50)),
        replication_factor=int(properties.get(f"{prefix}.replication.factor", min(brokers, 3))),
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
