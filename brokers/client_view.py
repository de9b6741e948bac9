"""The components of a broker that serves clients, as the handlers of their requests see them."""

from __future__ import annotations

import functools
import random

from mockraft.brokers.apis.api import BrokerView
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.coordinators.coordinators import Coordinators
from mockraft.brokers.core import Core
from mockraft.brokers.forwarding import Forwarding
from mockraft.brokers.moves.movers import Movers
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.topic_creation import TopicCreation


def view_of(
    core: Core, replicas: Replicas, movers: Movers, forwarding: Forwarding, coordinators: Coordinators
) -> BrokerView:
    """Return the view of a broker that is about to accept clients."""
    config, image = core.config, core.image
    assert image is not None
    return BrokerView(
        apis=APIS,
        config=config,
        image=image,
        observer=core.observer,
        logs=core.logs,
        directories=movers.directories,
        replicas=replicas,
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        verifier=coordinators.verifier,
        producer_ids=coordinators.producer_ids,
        forwarding=forwarding,
        create_topics=TopicCreation(forwarding, image, config.properties).create,
        start_move=functools.partial(start_move, movers),
        rng=random.Random(config.incarnation_id),
    )
