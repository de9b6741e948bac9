"""The components of a broker that serves clients, as the handlers of their requests see them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

from mockraft.brokers.apis.api import BrokerView
from mockraft.brokers.consumer_groups import Groups
from mockraft.brokers.core import Core
from mockraft.brokers.forwarding import Forwarding
from mockraft.brokers.moves.movers import Movers
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.topic_creation import TopicCreation


def view_of(
    core: Core, replicas: Replicas, movers: Movers, forwarding: Forwarding, changed: Callable[[], None]
) -> BrokerView:
    """Return the view of a broker that is about to accept clients; its groups are empty."""
    config, image = core.config, core.image
    assert image is not None
    return BrokerView(
        config=config,
        image=image,
        observer=core.observer,
        logs=core.logs,
        directories=movers.directories,
        replicas=replicas,
        groups=Groups(config.properties, changed),
        producer_ids=ProducerIds(forwarding.send, config.broker_id, replicas.broker_epoch),
        forwarding=forwarding,
        create_topics=TopicCreation(forwarding, config.properties).create,
        start_move=functools.partial(start_move, movers),
        rng=random.Random(config.incarnation_id),
    )
