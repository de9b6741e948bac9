"""The components of a broker that serves clients, as the handlers of their requests see them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

from mockraft.brokers.apis.api import BrokerView
from mockraft.brokers.apis.registry import APIS
from mockraft.brokers.config import REQUEST_TIMEOUT_MS
from mockraft.brokers.coordinators.group_coordinator import GroupCoordinator
from mockraft.brokers.coordinators.transactions import TransactionCoordinator
from mockraft.brokers.coordinators.verification import Verifier
from mockraft.brokers.core import Component, Core
from mockraft.brokers.forwarding import Forwarding
from mockraft.brokers.moves.movers import Movers
from mockraft.brokers.moves.requests import start_move
from mockraft.brokers.partitions.producer_ids import ProducerIds
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.shares.leaders import Leaders
from mockraft.brokers.shares.shares import Shares
from mockraft.brokers.topic_creation import TopicCreation


class Coordinators(Component):
    """Groups, share partitions and transactions of one broker. A component that comes after `Replicas`.

    `changed` is called with each result that a client's request may wait for.
    """

    def __init__(self, core: Core, replicas: Replicas, forwarding: Forwarding, changed: Callable[[], None]) -> None:
        timeout_ms = int(core.config.properties.get(*REQUEST_TIMEOUT_MS))
        self.producer_ids = ProducerIds(forwarding.send, core.config.broker_id, replicas.broker_epoch)
        self.groups = GroupCoordinator(core, replicas, changed)
        self.transactions = TransactionCoordinator(core, replicas, self.producer_ids, changed)
        self.shares = Shares(core, changed)
        self.share_leaders = Leaders(core, replicas, timeout_ms, changed)
        self.verifier = Verifier(core, replicas, self.transactions.log, timeout_ms, changed)

    def start(self) -> None:
        """Start the periodic tasks of transactions."""
        self.transactions.start()

    def metadata_advanced(self) -> None:
        """Follow the leaders of the coordinators' topics, and of partitions that wait for a marker."""
        self.groups.log.metadata_advanced()
        self.shares.metadata_advanced()
        self.transactions.log.metadata_advanced()
        self.transactions.markers.metadata_advanced()

    def replicas_changed(self) -> None:
        """Look at waiting appends again."""
        self.groups.log.replicas_changed()
        self.transactions.log.replicas_changed()

    def close(self) -> None:
        """Close the connections to other brokers."""
        self.groups.log.close()
        self.transactions.log.close()
        self.transactions.markers.close()
        self.verifier.close()
        self.share_leaders.close()


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
        shares=coordinators.shares,
        share_leaders=coordinators.share_leaders,
        producer_ids=coordinators.producer_ids,
        forwarding=forwarding,
        create_topics=TopicCreation(forwarding, image, config.properties).create,
        start_move=functools.partial(start_move, movers),
        rng=random.Random(config.incarnation_id),
    )
