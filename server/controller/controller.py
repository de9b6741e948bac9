"""The heart: log, image, soft state, and the one way in which any of them changes (Kafka's QuorumController)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

from mockraft.server.config import ControllerConfig
from mockraft.server.controller.heartbeat_states import HeartbeatStates
from mockraft.server.controller.image import Image
from mockraft.server.controller.periodic import Periodic
from mockraft.server.controller.periodic_tasks import periodic_tasks
from mockraft.server.controller.registration import register_itself
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


class Controller:
    """An active controller over the log of its raft node.

    `image` is what the log says; `sessions` and `heartbeats` are remembered beside it and lost with the process.
    Time comes in as `now_ms` (milliseconds since the epoch), chance as `chance`: the same calls give the same log.
    """

    def __init__(self, config: ControllerConfig, raft: Raft, chance: random.Random, now_ms: int) -> None:
        """Replay the log and take over: brokers that it says are unfenced get a fresh session."""
        self.config = config
        self.raft = raft
        self.log = log = raft.log
        self.chance = chance
        self.image = Image()
        # What ApiVersions calls FinalizedFeaturesEpoch: the end of what the features were last loaded from.
        self.features_epoch = log.end_offset - 1
        self.sessions = Sessions(config.session_timeout_ms)
        self.heartbeats = HeartbeatStates()
        for offset, (record, _) in log.records():
            self.image.apply(record, offset)
        if next(log.records(), None) is None:
            self.commit(ControllerResult(log.bootstrap_records(), None, "the log was empty"), now_ms)
        for broker_id, registration in self.image.cluster.brokers.items():
            self.heartbeats.register(broker_id, registration.fenced)
            if not registration.fenced:
                self.sessions.touch(broker_id, registration.broker_epoch, now_ms)
        self.periodic = Periodic(periodic_tasks(config), now_ms)
        if self.image.open_transaction is not None:
            aborted = RecordAt(AbortTransactionRecord(reason="failover"), 0)
            self.commit(ControllerResult([aborted], None, "a transaction of the last controller was not ended"), now_ms)
        self.commit(register_itself(self), now_ms)

    def commit(self, result: ControllerResult[T], now_ms: int) -> T:
        """Append the records, take them into the image, and only then give the response.

        ApiError POLICY_VIOLATION, with nothing written, where an atomic result is over the size of one batch.
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
        if result.reason:
            _log.info("%s (%d records up to offset %d)", result.reason, len(records), self.log.end_offset - 1)
        return result.response

    def apply(self, record: Any, offset: int) -> None:
        """Take one record of the log into the image, and remember beside it what Kafka does."""
        for effective in self.image.apply(record, offset):
            self._follow(effective)

    def tick(self, now_ms: int) -> None:
        """Do the periodic work that is due, and write a snapshot when the log has grown enough for one."""
        self.periodic.tick(self, now_ms)
        if self.log.snapshot_due(now_ms):
            self.log.write_snapshot(self.image.to_records(self.image.metadata_version), now_ms)

    def next_tick_ms(self, now_ms: int) -> int:
        """When `tick` has something to do, in milliseconds since the epoch; not before `now_ms`."""
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
