"""The heart: log, image, soft state, and the one way in which any of them changes (Kafka's QuorumController)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mockraft.server.config import ControllerConfig
from mockraft.server.controller.authorizer import Authorizer
from mockraft.server.controller.configs import static_configs
from mockraft.server.controller.data_dir import random_uuid
from mockraft.server.controller.features import METADATA_VERSION
from mockraft.server.controller.heartbeat_states import HeartbeatStates
from mockraft.server.controller.image import Image
from mockraft.server.controller.mutation_quota import MutationQuotas
from mockraft.server.controller.periodic import NEVER_MS, Periodic
from mockraft.server.controller.periodic_tasks import periodic_tasks
from mockraft.server.controller.placement import UsableRacks
from mockraft.server.controller.registration import register_itself
from mockraft.server.controller.releases import release_of
from mockraft.server.controller.result import RECORDS_PER_BATCH_MAX, ApiError, ControllerResult, check_fits_one_batch
from mockraft.server.controller.sessions import Sessions
from mockraft.wire import error_codes
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.abort_transaction_record import AbortTransactionRecord
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.fence_broker_record import FenceBrokerRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord
from mockraft.wire.records.unfence_broker_record import UnfenceBrokerRecord
from mockraft.wire.records.unregister_broker_record import UnregisterBrokerRecord

if TYPE_CHECKING:
    import random

    from mockraft.server.raft.raft import Raft

T = TypeVar("T")

_log = logging.getLogger("mockraft.controller")

STANDBY: Final = -1


class Controller:
    """A controller over a metadata log: active in an epoch that this node leads, else a standby.

    The active one has taken all of its log into `image`, a standby what is committed. `sessions` and `heartbeats` are
    remembered beside it while it is active. `epoch` is the one it is active in, -1 as a standby; `pending_offset` is
    the end of what it wrote and what is not committed yet, 0 when all is. `incarnation_id` is new with each process.
    `applied_offset` is the end of what is in the image. `authorizer` is None where everybody may do everything.

    Time comes in as `now_ms` (milliseconds since the epoch), chance as `chance`: the same calls give the same log.
    """

    def __init__(self, config: ControllerConfig, raft: Raft, chance: random.Random, now_ms: int) -> None:
        """Take in what is committed; where this node leads already, take over."""
        self.config = config
        self.offers: dict[int, tuple[Any, ...]] = {}
        """The last ApiVersions response in each version, and what it was made of."""
        self.release = None if config.as_version is None else release_of(config.as_version)
        """The Kafka release that it passes for; None is the one that it is made after."""
        self.raft = raft
        self.log = raft.log
        self.chance = chance
        self.incarnation_id = random_uuid(chance)
        self.epoch = STANDBY
        self.pending_offset = 0
        self.usable_racks = UsableRacks()
        self.static_configs = static_configs(config)
        self.mutation_quotas = MutationQuotas(
            windows=config.controller_quota_window_num, window_seconds=config.controller_quota_window_size_seconds
        )
        self.authorizer: Authorizer | None = None
        if config.has_authorizer:
            everyone = config.allow_everyone_if_no_acl_found
            self.authorizer = Authorizer(config.super_user_principals, allow_everyone_if_no_acl_found=everyone)
        self._load()
        raft.listener = self
        if raft.is_leader:
            self.became_leader(raft.leader_epoch, now_ms)

    def became_leader(self, epoch: int, now_ms: int) -> None:
        """Become active: brokers that the log says are unfenced get a fresh session (QuorumController.claim)."""
        self.epoch = epoch
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
        if not self.is_registered:
            self.commit(register_itself(self), now_ms)

    def lost_leadership(self, now_ms: int) -> None:
        """Become a standby: what was not committed is forgotten (QuorumController.renounce)."""
        if self.epoch == STANDBY:
            return
        _log.warning("not active any more in epoch %d", self.epoch)
        self.epoch = STANDBY
        self.pending_offset = 0
        self._load()

    def committed(self, now_ms: int) -> None:
        """The high watermark moved on: a standby takes in what was committed."""
        if self.epoch == STANDBY:
            self._apply_log(self.log.high_watermark)
        elif self.log.high_watermark >= self.pending_offset:
            self.pending_offset = 0
        # A snapshot is of what is committed, and a tick comes while what it wrote is not.
        self._snapshot_if_due(now_ms)

    def truncated(self, now_ms: int) -> None:
        """The log lost its end, or begins after a snapshot that was fetched."""
        if self.epoch == STANDBY and self.log.start_offset > self.applied_offset:
            self._load()

    def commit(self, result: ControllerResult[T], now_ms: int) -> T:
        """Append the records, take them into the image, and only then give the response.

        In a quorum of several nodes they are committed later: see `pending_offset`. ApiError POLICY_VIOLATION, with
        nothing written, where an atomic result is over the size of one batch.
        """
        records = result.records
        if not records:
            return result.response
        if result.atomic:
            check_fits_one_batch(records)
        for start in range(0, len(records), RECORDS_PER_BATCH_MAX):
            batch = records[start : start + RECORDS_PER_BATCH_MAX]
            base_offset = self.log.append(batch, now_ms)
            for offset, (record, _) in enumerate(batch, base_offset):
                self.apply(record, offset)
            end_offset = self.applied_offset = base_offset + len(batch)
            # At once, for the next batch may fail, and then others see this one.
            if self.log.high_watermark < end_offset:
                self.pending_offset = end_offset
        if result.reason:
            _log.info("%s (%d records up to offset %d)", result.reason, len(records), end_offset - 1)
        return result.response

    @property
    def is_registered(self) -> bool:
        """Whether the log knows this controller, as the process that it is."""
        known = self.image.cluster.controllers.get(self.config.node_id)
        return known is not None and known.incarnation_id == self.incarnation_id

    @property
    def wrong_controller(self) -> str:
        """What to say with NOT_CONTROLLER (ControllerExceptions.newWrongControllerException)."""
        leader_id = self.raft.leader_id
        if leader_id is None:
            return "No controller appears to be active."
        return f"The active controller appears to be node {leader_id}."

    def apply(self, record: Any, offset: int) -> None:
        """Take one record of the log into the image, and remember beside it what Kafka does."""
        for effective in self.image.apply(record, offset):
            self._follow(effective)

    def tick(self, now_ms: int) -> None:
        """Do the periodic work that is due, and write a snapshot when the log has grown enough for one."""
        if self.epoch != STANDBY:
            self.periodic.tick(self, now_ms)
        self._snapshot_if_due(now_ms)

    def next_tick_ms(self, now_ms: int) -> int:
        """When `tick` has something to do, in milliseconds since the epoch; not before `now_ms`."""
        if self.epoch == STANDBY:
            return NEVER_MS
        return max(now_ms, self.periodic.next_due_ms())

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker is registered, unfenced and not in controlled shutdown."""
        registration = self.image.cluster.brokers.get(broker_id)
        return registration is not None and registration.is_active

    def check_broker_epoch(self, broker_id: int, broker_epoch: int) -> None:
        """ApiError STALE_BROKER_EPOCH unless the broker is registered at this epoch."""
        registration = self.image.cluster.brokers.get(broker_id)
        if registration is None:
            raise ApiError(error_codes.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if registration.broker_epoch != broker_epoch:
            raise ApiError(
                error_codes.STALE_BROKER_EPOCH,
                f"Expected broker epoch {registration.broker_epoch}, but got broker epoch {broker_epoch}",
            )

    def _load(self) -> None:
        """Make the image anew from what is committed."""
        self.image = Image()
        self.applied_offset = 0
        # What ApiVersions calls FinalizedFeaturesEpoch: the end of what the features were last loaded from.
        self.features_epoch = self.log.high_watermark - 1
        self._apply_log(self.log.high_watermark)

    def _apply_log(self, to_offset: int) -> None:
        """Take in the records of the log up to this offset, which nobody here wrote."""
        for offset, (record, _) in self.log.records(self.applied_offset, to_offset):
            if any(isinstance(effective, FeatureLevelRecord) for effective in self.image.apply(record, offset)):
                self.features_epoch = to_offset - 1
        self.applied_offset = to_offset

    def _snapshot_if_due(self, now_ms: int) -> None:
        if self.log.snapshot_due(now_ms):
            self.log.write_snapshot(self.image.to_records(self.image.metadata_version), now_ms)

    def _follow(self, record: Any) -> None:
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
