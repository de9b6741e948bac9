"""Configs of a group: its own, else the cluster's, else the broker's, else the default (GroupConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mockraft.brokers.coordinators.consumer_groups import GroupLimits
from mockraft.brokers.image import ClusterImage
from mockraft.kafka_configs.config_keys import BROKER, GROUP, keys
from mockraft.kafka_configs.config_values import parse
from mockraft.kafka_configs.described_configs import broker_key

NO_LIMIT: Final = {"group.consumer.max.size": str(GroupLimits().members_max)}
"""Kafka sets no limit of members by default."""


def group_config(image: ClusterImage, properties: Mapping[str, str], group_id: str, key: str) -> Any:
    """Return the value of a key of groups, such as `share.session.timeout.ms`.

    Raises ApiError (INVALID_CONFIG) for a value that no controller would have accepted.
    """
    name = broker_key(key)
    own, cluster = image.config(GROUP, group_id), image.config(BROKER, "")
    known = keys(BROKER)[name] if name in keys(BROKER) else keys(GROUP)[key]
    layers = (own.get(key), cluster.get(name), properties.get(name), NO_LIMIT.get(name), known.default)
    return parse(known, next(each for each in layers if each is not None))
