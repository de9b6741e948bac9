"""Log directories: what follows when a broker says that they failed, are cordoned or host a replica.

ReplicationControlManager's handleDirectories… and handleAssignReplicasToDirs; KIP-858, KIP-1066.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockraft.server.controller.fencing import leader_and_isr_updates
from mockraft.server.controller.image import BrokerRegistration, directory_ids
from mockraft.server.controller.result import ApiError
from mockraft.server.rules import Rule
from mockraft.wire import error_codes, uuids
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller

_LOG_DIRS_VERSION = 2
_CORDONED_VERSION = 3
_UNKNOWN = (directory_ids.MIGRATING, directory_ids.UNASSIGNED)


def directories_offline(controller: "Controller", broker_id: int, offline_dirs: Sequence[bytes]) -> list[RecordAt]:
    """A broker says that directories failed: its replicas there leave ISR and leadership; last, the registration.

    Directories that are not registered (any more) are ignored, so saying it again writes nothing.
    """
    registration = controller.image.cluster.brokers[broker_id]
    reported = set(offline_dirs)
    newly_offline = [directory for directory in registration.log_dirs if directory in reported]
    if not newly_offline:
        return []
    records = []
    for directory in newly_offline:
        places = controller.image.topics.index.in_directory(directory)
        records += leader_and_isr_updates(controller, places, removed=broker_id)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=registration.broker_epoch,
        log_dirs=[directory for directory in registration.log_dirs if directory not in reported],
    )
    if Rule.CORDONED_DIRS_ARE_ALWAYS_TOLD in controller.config.rules:
        change.cordoned_log_dirs = list(registration.cordoned_log_dirs or ())
    return [*records, RecordAt(change, _LOG_DIRS_VERSION)]


def directories_cordoned(
    controller: "Controller", registration: BrokerRegistration, cordoned_dirs: Sequence[bytes] | None
) -> list[RecordAt]:
    """A broker says which directories take no new replicas; None says nothing."""
    if cordoned_dirs is None:
        return []
    known = registration.cordoned_log_dirs
    if known is None and Rule.CORDONED_DIRS_ARE_ALWAYS_TOLD in controller.config.rules:
        known = ()
    if known is not None and (known == (*cordoned_dirs,) or set(known) == set(cordoned_dirs)):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=registration.broker_id,
        broker_epoch=registration.broker_epoch,
        cordoned_log_dirs=list(cordoned_dirs),
    )
    return [RecordAt(change, _CORDONED_VERSION)]


def check_registered(registration: BrokerRegistration, offline_dirs: Sequence[bytes]) -> None:
    """ApiError LOG_DIR_NOT_FOUND for a directory that this registration never had (KIP-858's text)."""
    for directory in offline_dirs:
        if directory not in registration.log_dirs and directory not in registration.offline_log_dirs:
            message = f"Broker {registration.broker_id} did not register log directory {uuids.text_of(directory)}"
            raise ApiError(error_codes.LOG_DIR_NOT_FOUND, message)


def waits_for_assignments(controller: "Controller", registration: BrokerRegistration) -> bool:
    """Whether a broker with several directories has replicas in none of them yet (KIP-858's text)."""
    if len(registration.log_dirs) <= 1:
        return False
    # Directories that mean nothing yet have no index: this looks at every partition, at a fenced broker's heartbeats.
    return any(
        registration.broker_id in partition.replicas and partition.directory(registration.broker_id) in _UNKNOWN
        for topic in controller.image.topics.by_id.values()
        for partition in topic.partitions.values()
    )
