"""Log directories: what follows when a broker says that they failed, are cordoned or host a replica.

ReplicationControlManager's handleDirectories… and handleAssignReplicasToDirs; KIP-858, KIP-1066.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockraft.server.controller.fencing import leader_and_isr_updates
from mockraft.server.controller.image import BrokerRegistration
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller

_LOG_DIRS_VERSION = 2
_CORDONED_VERSION = 3


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
    return [*records, RecordAt(change, _LOG_DIRS_VERSION)]


def directories_cordoned(registration: BrokerRegistration, cordoned_dirs: Sequence[bytes] | None) -> list[RecordAt]:
    """A broker says which directories take no new replicas; None says nothing."""
    if cordoned_dirs is None:
        return []
    known = registration.cordoned_log_dirs
    if known is not None and set(known) == set(cordoned_dirs):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=registration.broker_id,
        broker_epoch=registration.broker_epoch,
        cordoned_log_dirs=list(cordoned_dirs),
    )
    return [RecordAt(change, _CORDONED_VERSION)]
