"""The components of a broker that serves clients, as the handlers of their requests see them."""

from __future__ import annotations

import functools
import random
import time
from typing import TYPE_CHECKING

from mockraft.brokers.apis.api import BrokerView
from mockraft.brokers.consumer_groups import Groups
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.brokers.topic_creation import TopicCreation

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker


def view_of(broker: SimulatedBroker) -> BrokerView:
    """Return the view of a broker that is about to accept clients; its groups are empty."""
    config, image, replicas, forwarding = broker.config, broker.image, broker.replicas, broker.forwarding
    assert image is not None
    assert replicas is not None
    assert forwarding is not None
    return BrokerView(
        config=config,
        image=image,
        observer=broker.observer,
        logs=broker.logs,
        directories=broker.directories,
        replicas=replicas,
        groups=Groups(config.properties, broker.clients_changed),
        producer_ids=ProducerIds(forwarding.send, config.broker_id, replicas.broker_epoch),
        forwarding=forwarding,
        create_topics=TopicCreation(forwarding, config.properties).create,
        start_move=functools.partial(start_move, broker.movers),
        chance=random.Random(config.incarnation_id),
        wall_clock_ms=lambda: time.time_ns() // 1_000_000,
    )
