"""One simulated broker without sockets, clock or threads: events and the time in, effects out.

To a controller it looks like a Kafka broker of the default release: the same connections with the same client ids,
the same requests in the same order and at the same intervals. The shell (`brokers.shell`) carries out the effects.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from mockraft.brokers import lifecycle
from mockraft.brokers.client_view import Coordinators, view_of
from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.core import Component, Core
from mockraft.brokers.directories import Directories
from mockraft.brokers.effects import (
    ClientClosed,
    ClientConnected,
    ClientEvent,
    ClientGone,
    ClientRead,
    ClientSecured,
    ClientSent,
    Effect,
    Event,
    ToClient,
)
from mockraft.brokers.forwarding import Forwarding
from mockraft.brokers.heartbeats import Heartbeats
from mockraft.brokers.image import ClusterImage
from mockraft.brokers.lifecycle import BrokerState
from mockraft.brokers.listener.clients import Clients, Limits
from mockraft.brokers.metadata.metadata_view import MetadataView
from mockraft.brokers.metadata.observer import Observer
from mockraft.brokers.metadata.replication import Replication, decoder
from mockraft.brokers.metadata.shared_replication import Membership, SharedReplication
from mockraft.brokers.moves.movers import Movers
from mockraft.brokers.moves.starting import settle
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.brokers.storage import Storage, logs_of
from mockraft.kafka_api.effects import Effect as ListenerEffect
from mockraft.kafka_api.listener import Observed
from mockraft.releases import Behaviour


class BrokerNode(Core):
    """A broker that registers, replicates the metadata log, sends heartbeats and shuts down; see `BrokerConfig`.

    It replicates the log itself, or shares it with other brokers when a `shared` replication is given; then its disks
    are in memory if it serves clients, since records of an earlier run would have to be fetched.
    """

    def __init__(self, config: BrokerConfig, shared: SharedReplication | None = None) -> None:
        image: ClusterImage | None = None
        if shared is not None:
            view, observer = shared.view.views[config.broker_id], shared.observer
            view.changed = set(view.replicas)
            if config.serve_clients:
                image = shared.image
        else:
            image = ClusterImage() if config.serve_clients else None
            view = MetadataView(config.broker_id)
            directory_id, listener = config.metadata_directory_id, config.controller_listener_name
            observer = Observer(config.broker_id, config.cluster_id, directory_id, view, listener, decoder(config))
            observer.image = image
        super().__init__(config, view, observer, image, logs_of(config))
        self.replication: Replication | Membership
        if shared is not None:
            self.replication = shared.member(
                config.broker_id,
                lambda: self.kernel.enter(self._metadata_advanced),
                lambda error: self.kernel.enter(self.failed, error),
            )
        else:
            self.replication = Replication(self.kernel, config, observer, self._metadata_advanced)
        self.heart = Heartbeats(self)
        self.send = self.heart.send
        self.storage = Storage(self)
        self.directories = Directories(self)
        self.movers = Movers(self, self.directories)
        self.replicas: Replicas | None = None
        self.forwarding: Forwarding | None = None
        self.coordinators: Coordinators | None = None
        if image is not None:
            neighbours = None if shared is None else shared.neighbours
            self.directories.makes_logs_late = neighbours is not None
            self.replicas = Replicas(self, self.directories, image, self._replicas_changed, neighbours)
            self.forwarding = Forwarding(self, self._changed_for_clients)
            self.coordinators = Coordinators(self, self.replicas, self.forwarding, self._changed_for_clients)
        self.clients: Clients | None = None
        self.observed: Observed | None = None
        self.directories.moves, self.directories.hosting = self.movers, self.replicas
        self.directories.on_first_published = self._settle_moves
        self.directories.on_progress = self._look_recovered
        self._is_recovering = False
        components: tuple[Component | None, ...] = (
            self.storage,
            self.directories,
            self.replicas,
            self.movers,
            self.forwarding,
            self.coordinators,
        )
        self.components = [component for component in components if component is not None]

    # For the shell.

    def start(self, now_ms: float) -> list[Effect]:
        """Start: find the controller, fetch, register. Raises what a component raises that cannot start."""
        for component in self.components:
            component.start()
        return self.kernel.run(now_ms, self._start)

    def step(self, event: Event | ClientEvent, now_ms: float) -> list[Effect]:
        """Process one event; return the effects."""
        return self.kernel.step(event, now_ms)

    def tick(self, now_ms: float) -> list[Effect]:
        """Do what is due; return the effects."""
        return self.kernel.tick(now_ms)

    @property
    def next_deadline_ms(self) -> float:
        """The time of the next tick."""
        return self.kernel.next_deadline_ms

    def close(self) -> None:
        """Release the components of a stopped broker. Only once: later its directories may be a successor's."""
        components, self.components = self.components, []
        if self.observed is not None and self._client_released in (released := self.observed.on_release or []):
            released.remove(self._client_released)
        # The logs are closed last, as in Kafka: the other components may still write.
        for component in reversed(components):
            component.close()
        self.replication.close()

    # For those who read its state.

    @property
    def state(self) -> BrokerState:
        """The current state of the broker's lifecycle."""
        return self.life.state

    @property
    def end_reason(self) -> str:
        """Why it is over, for people; empty while it is not."""
        return "" if self.end is None else self.fault or self.end.value

    # Lifecycle.

    def _start(self) -> None:
        timed_out = functools.partial(self.happen, lifecycle.RegistrationTimedOut())
        self.kernel.after("registration", self.config.registration_timeout_ms, timed_out)
        self.happen(lifecycle.Started())
        self.replication.start()

    def entered(self, state: BrokerState) -> None:
        """Recover, and serve clients: the broker has caught up with the metadata."""
        if state is BrokerState.RECOVERY:
            self.kernel.after("recovery", self.config.recovery_ms, self._recover)
            self._open_to_clients()

    def _recover(self) -> None:
        self._is_recovering = True
        self._look_recovered()

    def _look_recovered(self) -> None:
        """Continue once the replicas are placed; with KIP-858's text, once the controller knows their directories."""
        waits_for_assignments = self.config.fenced_until_assigned and self.directories.assignments.queued
        if self._is_recovering and not self.directories.waiting and not waits_for_assignments:
            self._is_recovering = False
            self.happen(lifecycle.ReadyToUnfence())

    def _settle_moves(self) -> None:
        settle(self.movers, self.storage.found.duplicates if self.storage.found else [])

    def _metadata_advanced(self) -> None:
        self.heart.channel.controller_moved()
        for component in self.components:
            component.metadata_advanced()
        registration = self.view.registration
        if (
            registration is not None
            and registration.broker_epoch == self.life.broker_epoch
            and not registration.log_dirs
            and self.view.has(Behaviour.DIRECTORY_ASSIGNMENT)
        ):
            # Kafka's BrokerRegistrationTracker: the registration was made before directories were known.
            self.happen(lifecycle.RegisterAgain())

    # Clients.

    def _open_to_clients(self) -> None:
        """Serve clients from now on: the broker has caught up with the metadata."""
        if self.replicas is not None and self.forwarding is not None and self.coordinators is not None:
            view = view_of(self, self.replicas, self.movers, self.forwarding, self.coordinators)
            self.clients = Clients(view, Limits.of(self.config.properties), self._await_clients, self.observed)
            if self.observed is not None and self.observed.on_release is not None:
                self.observed.on_release.append(self._client_released)

    def _client_released(self) -> None:
        if self.end is None:
            self.kernel.enter(self._changed_for_clients)

    def _replicas_changed(self) -> None:
        if self.coordinators is not None:
            self.coordinators.replicas_changed()
        self._changed_for_clients()

    def _changed_for_clients(self) -> None:
        if self.clients is not None:
            self.clients.changed()

    def serve(self, event: ClientEvent) -> None:
        """Process an event of an accepted connection."""
        assert self.clients is not None
        now_ms = int(self.kernel.now_ms)
        match event:
            case ClientSent(connection_id, data, is_late):
                self._to_clients(self.clients.step(connection_id, data, now_ms, is_late))
            case ClientRead(connection_id):
                self._to_clients(self.clients.sent(connection_id, now_ms))
            case ClientConnected(connection_id, listener_name, client_address):
                self._to_clients(self.clients.connected(connection_id, client_address, now_ms, listener_name))
            case ClientSecured(connection_id, certificate):
                self._to_clients(self.clients.secured(connection_id, certificate, now_ms))
            case ClientClosed(connection_id, kind, reason):
                self._to_clients(self.clients.close(connection_id, kind, reason, now_ms))
            case ClientGone(connection_id, reason):
                self.clients.disconnected(connection_id, reason, now_ms)

    def _tick_clients(self) -> None:
        assert self.clients is not None
        self._to_clients(self.clients.tick(int(self.kernel.now_ms)))

    def _to_clients(self, effects: Iterable[ListenerEffect]) -> None:
        for effect in effects:
            self.kernel.emit(ToClient(effect))
        self._await_clients()

    def _await_clients(self) -> None:
        assert self.clients is not None
        self.kernel.after(
            "clients",
            max(self.clients.next_tick_ms(int(self.kernel.now_ms)) - self.kernel.now_ms, 0),
            self._tick_clients,
        )
