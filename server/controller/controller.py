"""The controller: log, image, soft state, and the only code that changes them (Kafka's QuorumController)."""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from mockraft.kafka_api.api import NEVER_MS
from mockraft.kafka_api.refusals import Repeats
from mockraft.releases import METADATA_VERSION, Behaviour, release
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.brokers.heartbeat_states import HeartbeatStates, Sessions
from mockraft.server.controller.brokers.registration import register_controller, registration_of
from mockraft.server.controller.image import Image
from mockraft.server.controller.image.settings import SettingsImage
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.server.controller.periodic import Periodic, periodic_tasks
from mockraft.server.controller.result import (
    RECORDS_PER_BATCH_MAX,
    ApiError,
    ControllerResult,
    Steps,
    check_fits_one_batch,
)
from mockraft.server.controller.settings.configs import static_configs
from mockraft.server.controller.settings.features import check_supported
from mockraft.server.controller.settings.mutation_quota import MutationQuotas
from mockraft.server.controller.topics.racks import UsableRacks
from mockraft.server.events import Change, Event, Events, changes_of
from mockraft.wire import error_codes
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.message import Message
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.abort_transaction_record import AbortTransactionRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.partition_change_record import PartitionChangeRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

if TYPE_CHECKING:
    import random

    from mockraft.server.controller.image.cluster import BrokerRegistration
    from mockraft.server.raft.raft import Raft

T = TypeVar("T")

_log = logging.getLogger("mockraft.controller")

STANDBY: Final = -1


class Controller:
    """A controller over a metadata log: active in an epoch that this node leads, else a standby.

    The active controller has applied its whole log to `image`, a standby the committed part. `sessions` and
    `heartbeats` exist beside it while it is active. `epoch` is the one it is active in, -1 as a standby;
    `pending_offset` is the end of its uncommitted records, 0 when all are committed. `incarnation_id` is new with each
    process. `applied_offset` is the end of the records in the image. `authorizer` is None if everything is allowed.
    `raft_failure` and `tick_failure` are what the last poll of raft and the last tick raised, None if they did not; the
    node sets them.

    Time is the argument `now_ms` (milliseconds since the epoch), randomness comes from `rng`: the same calls give the
    same log.
    """

    def __init__(
        self, config: ControllerConfig, raft: Raft, rng: random.Random, now_ms: int, events: Events | None = None
    ) -> None:
        """Apply committed records; become active if this node already leads."""
        self.config = config
        self.events = events or Events()
        self._uncommitted_events: list[tuple[int, Event]] = []
        self.policy_failure = ""
        self.refused_brokers = Repeats(silent_ms=math.inf)
        """The last reason why a broker was refused something (see mockraft.server.apis.refusals)."""
        self.release = release(config.release)
        """The Kafka release whose controller this is."""
        self.raft = raft
        self.log = raft.log
        self.rng = rng
        self.incarnation_id = draw_uuid(rng)
        self.epoch = STANDBY
        self.pending_offset = 0
        self.raft_failure: str | None = None
        self.tick_failure: str | None = None
        self.usable_racks = UsableRacks()
        self.steps: Steps | None = None
        """The fencing that is being made in steps: each tick makes one step."""
        self._snapshot: Generator[None, None, object] | None = None
        """The rest of a snapshot that is being written: each tick does a part, for which requests wait."""
        self.static_configs = static_configs(config)
        self.mutation_quotas = MutationQuotas(
            windows=config.controller_quota_window_num, window_seconds=config.controller_quota_window_size_seconds
        )
        self.authorizer = config.authorizer_of()
        self._load()
        raft.listener = self
        if raft.is_leader:
            self.became_leader(raft.epoch, now_ms)

    def became_leader(self, epoch: int, now_ms: int) -> None:
        """Become active: unfenced brokers get a fresh session (QuorumController.claim)."""
        self.epoch = epoch
        self.events.add(Change("controller", str(self.config.node_id), f"active in epoch {epoch}"), now_ms)
        self._apply_log(self.log.end_offset)
        self.heartbeats = HeartbeatStates()
        self.sessions = Sessions(self.config.session_timeout_ms)
        for broker_id, registration in self.image.cluster.brokers.items():
            self.heartbeats.register(broker_id, registration.fenced)
            if not registration.fenced:
                self.sessions.touch(broker_id, registration.broker_epoch, now_ms)
        self.periodic = Periodic(periodic_tasks(self.config), now_ms)
        if self.image.open_transaction is not None:
            aborted = RecordAt(AbortTransactionRecord(reason="failover"), 0)
            self.commit(ControllerResult([aborted], None, "a transaction of the last controller was not ended"), now_ms)
        if METADATA_VERSION not in self.image.features:
            self.commit(ControllerResult(self.log.bootstrap_records(), None, "the log was empty"), now_ms)
        self._register(now_ms)

    def lost_leadership(self) -> None:
        """Become a standby: uncommitted changes are dropped (QuorumController.renounce)."""
        if self.epoch == STANDBY:
            return
        _log.warning("no longer active in epoch %d", self.epoch)
        self.epoch = STANDBY
        self.pending_offset = 0
        self.steps = None
        self._load()

    def committed(self, now_ms: int) -> None:
        """Handle a moved high watermark: a standby applies committed records."""
        self._publish_events()
        if self.epoch == STANDBY:
            self._apply_log(self.log.high_watermark)
        elif self.log.high_watermark >= self.pending_offset:
            self.pending_offset = 0
        # A snapshot covers committed records only, and a tick may come while there are uncommitted ones.
        self._snapshot_if_due(now_ms)

    def truncated(self) -> None:
        """Rebuild the image after the log was truncated or restarted at a fetched snapshot."""
        # A snapshot says nothing of whose records it has: none of these may be among them.
        kept = range(self.log.start_offset + 1, self.log.end_offset + 1)
        self._uncommitted_events = [each for each in self._uncommitted_events if each[0] in kept]
        if self.epoch == STANDBY and self.log.start_offset > self.applied_offset:
            self._load()

    def commit(self, result: ControllerResult[T], now_ms: int) -> T:
        """Append the records, apply them to the image, and then return the response.

        In a quorum of several nodes they are committed later: see `pending_offset`. ApiError POLICY_VIOLATION, with
        nothing written, if an atomic result exceeds the size of one batch.
        """
        records = result.records
        if result.rest is not None:
            result.rest.reason, result.rest.cause = result.reason, result.cause
            self.steps = result.rest
        if not records:
            return result.response
        if result.atomic:
            check_fits_one_batch(records)
        for start in range(0, len(records), RECORDS_PER_BATCH_MAX):
            batch = records[start : start + RECORDS_PER_BATCH_MAX]
            changes = changes_of(batch, self.image)
            base_offset = self.log.append(batch, now_ms)
            for offset, (record, _) in enumerate(batch, base_offset):
                self.apply(record, offset)
            end_offset = self.applied_offset = base_offset + len(batch)
            # At once: the next batch may fail, and then this one is visible to others.
            if self.log.high_watermark < end_offset:
                self.pending_offset = end_offset
            why = result.reason.partition(": ")[2] if result.cause is None else result.cause
            events = [self.events.made(each, now_ms, "" if why == each.change else why) for each in changes]
            self._uncommitted_events += [(end_offset, each) for each in events]
            self._publish_events()
        if result.reason:
            _log.info("%s (%d records up to offset %d)", result.reason, len(records), end_offset - 1)
        return result.response

    def _publish_events(self) -> None:
        """Publish the events of committed records: an election may take others back."""
        while self._uncommitted_events and self._uncommitted_events[0][0] <= self.log.high_watermark:
            self.events.publish(self._uncommitted_events.pop(0)[1])

    @property
    def has_to_register(self) -> bool:
        """True if the log does not contain this incarnation (any more), and metadata.version allows it to."""
        known = self.image.cluster.controllers.get(self.config.node_id)
        is_registered = known is not None and known.incarnation_id == self.incarnation_id
        return not is_registered and self.has(Behaviour.CONTROLLER_REGISTRATION)

    @property
    def failure(self) -> str | None:
        """Reason why this controller cannot continue, and so cannot commit; None while it can."""
        failure = self.log.failure or self.raft.failure or self.raft_failure or self.tick_failure
        return failure or (self.periodic.failure if self.epoch != STANDBY else None)

    @property
    def wrong_controller(self) -> str:
        """Return the message of NOT_CONTROLLER (ControllerExceptions.newWrongControllerException)."""
        leader_id = self.raft.leader_id
        if leader_id is None:
            return "No controller appears to be active."
        return f"The active controller appears to be node {leader_id}."

    def apply(self, record: Message, offset: int) -> None:
        """Apply one record of the log to the image, and update soft state as Kafka does."""
        for effective in self.image.apply(record, offset):
            self._follow(effective)

    def tick(self, now_ms: int) -> None:
        """Do due periodic work, and write a snapshot when the log has grown enough for one."""
        if self.epoch != STANDBY:
            self._register(now_ms)
            self.continue_steps(now_ms)
            self.periodic.tick(self, now_ms)
        if self._snapshot is None:
            self._snapshot_if_due(now_ms)
        else:
            self._continue_snapshot()

    @property
    def fenced_in_steps(self) -> int | None:
        """Id of the broker that is being fenced in steps, if there is one."""
        return None if self.steps is None else self.steps.broker_id

    def continue_steps(self, now_ms: int) -> None:
        """Make the next step of the fencing that is made in steps, if there is one."""
        steps = self.steps
        if steps is None:
            return
        steps.waiting = steps.waiting or next(steps.records, None)
        if steps.waiting is None:
            self.steps = None
            return
        (records, is_last), end_offset = steps.waiting, self.log.end_offset
        try:
            reason = steps.reason if is_last else ""
            self.commit(ControllerResult(records, None, reason, atomic=False, cause=steps.cause), now_ms)
        finally:
            if self.log.end_offset != end_offset or not records:
                steps.waiting = None
        if is_last:
            self.steps = None

    def next_tick_ms(self, now_ms: int) -> int:
        """Return when `tick` has work, in milliseconds since the epoch; not before `now_ms`."""
        if self._snapshot is not None or self.steps is not None or self.log.snapshot_due(now_ms):
            return now_ms
        if self.epoch == STANDBY:
            return NEVER_MS
        return now_ms if self.has_to_register else max(now_ms, self.periodic.next_due_ms())

    def why_silent(self, broker_id: int, since_ms: int) -> str:
        """Return what kept a broker's heartbeats away since a time; an empty text if that is not known."""
        return self.events.silence(broker_id, since_ms)

    def has(self, behaviour: Behaviour) -> bool:
        """Return True if this controller has the behaviour: by its release, its levels or a proposal."""
        return behaviour in self.image.settings.behaviours or behaviour in self.log.behaviours

    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        """Return the range of levels of every feature that this controller supports."""
        return self.release.feature_ranges(unstable=self.config.unstable_feature_versions_enable)

    def is_active(self, broker_id: int) -> bool:
        """Return True if the broker is registered, unfenced and not in controlled shutdown."""
        registration = self.image.cluster.brokers.get(broker_id)
        return registration is not None and registration.is_active

    def check_broker_epoch(self, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        """Return the broker's registration. ApiError STALE_BROKER_EPOCH unless it is registered at this epoch."""
        registration = self.image.cluster.brokers.get(broker_id)
        if registration is None:
            raise ApiError(error_codes.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if registration.broker_epoch != broker_epoch:
            raise ApiError(
                error_codes.STALE_BROKER_EPOCH,
                f"Expected broker epoch {registration.broker_epoch}, but got broker epoch {broker_epoch}",
            )
        return registration

    def _register(self, now_ms: int) -> None:
        """Write this controller's registration if the log has none of this incarnation, or another's in its place.

        Kafka's does so after each change of its registration or of metadata.version (ControllerRegistrationManager).
        """
        if self.has_to_register:
            self.commit(register_controller(self, registration_of(self)), now_ms)

    def _load(self) -> None:
        """Rebuild the image from committed records."""
        self.image = Image(settings=SettingsImage(release=self.release, proposals=self.config.proposals))
        self.applied_offset = 0
        # FinalizedFeaturesEpoch of ApiVersions: the end of the records that the features were last loaded from.
        self.features_epoch = self.log.high_watermark - 1
        self._apply_log(self.log.high_watermark)

    def _apply_log(self, to_offset: int) -> None:
        """Apply the log's records up to this offset, written by another node.

        DataDirError for a record that no controller would have written there (a fatal fault in Kafka).
        """
        unstable = self.config.unstable_feature_versions_enable
        for offset, (record, _) in self.log.records(self.applied_offset, to_offset):
            try:
                effective = self.image.apply(record, offset)
                levels = [each for each in effective if isinstance(each, FeatureLevelRecord)]
                for each in levels:
                    check_supported(self.release, each.name, each.feature_level, unstable=unstable)
            except (LookupError, ValueError) as error:
                where = f"{type(record).__name__} at offset {offset}"
                raise DataDirError(f"the log cannot be replayed: {where}: {error or 'it has no place'}") from error
            if levels:
                self.features_epoch = to_offset - 1
        self.applied_offset = to_offset

    def close(self) -> None:
        """Abandon a snapshot that is being written, and close the log."""
        if self._snapshot is not None:
            self._snapshot.close()
        self.log.close()

    def _snapshot_if_due(self, now_ms: int) -> None:
        self.log.clean_if_due(now_ms)
        if self._snapshot is None and self.log.snapshot_due(now_ms):
            image = self.image.copy()
            self._snapshot = self.log.snapshot_in_steps(image.to_records(image.metadata_version), now_ms)
            self._continue_snapshot()

    def _continue_snapshot(self) -> None:
        """Write on until the next pause; a small snapshot has none."""
        assert self._snapshot is not None
        try:
            next(self._snapshot)
        except StopIteration:
            self._snapshot = None
        except BaseException:
            self._snapshot = None
            raise

    def _follow(self, record: Message) -> None:
        if record.api_key == PartitionChangeRecord.api_key:
            return  # most records are of this kind
        if isinstance(record, RegisterBrokerRecord):
            self.heartbeats.remove(record.broker_id)
            self.heartbeats.register(record.broker_id, record.fenced)
        elif isinstance(record, UnregisterBrokerRecord):
            self.heartbeats.remove(record.broker_id)
        elif isinstance(record, BrokerRegistrationChangeRecord):
            self.heartbeats.register(record.broker_id, self.image.cluster.brokers[record.broker_id].fenced)
        elif isinstance(record, FeatureLevelRecord):
            self.features_epoch = self.log.end_offset - 1
        elif isinstance(record, FenceBrokerRecord | UnfenceBrokerRecord):
            self.heartbeats.register(record.id, self.image.cluster.brokers[record.id].fenced)
