"""Registration of brokers and controllers (ClusterControlManager; KIP-631, KIP-858, KIP-919, KIP-966)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from mockraft.kafka_api.security import SECURITY_PROTOCOLS
from mockraft.releases import KRAFT_VERSION, METADATA_VERSION, Behaviour, Release
from mockraft.server.controller.brokers import fencing
from mockraft.server.controller.image import BrokerRegistration
from mockraft.server.controller.image.cluster import Levels, kept_by_features, levels_of
from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.wire import directory_ids, error_codes, uuids
from mockraft.wire.java_values import trim
from mockraft.wire.messages.broker_registration_request import BrokerRegistrationRequest, Listener
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest
from mockraft.wire.messages.controller_registration_request import Feature as OwnFeature
from mockraft.wire.messages.controller_registration_request import Listener as ControllerListener
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from mockraft.wire.records.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from mockraft.wire.records.unregister_controller_record import UnregisterControllerRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

PartT = TypeVar("PartT")

CLEAN_SHUTDOWN_SINCE: Final = 3
"""Lowest version of BrokerRegistrationRequest with the previous broker epoch."""

_NEVER_REGISTERED_EPOCH = -2
_SECURITY_PROTOCOL_MAX = 3


def register_broker(
    controller: "ControllerContext", request: BrokerRegistrationRequest, request_version: int, now_ms: int
) -> ControllerResult[int]:
    """Register a broker, or replace its registration; return the broker epoch.

    A new epoch is the offset at which this operation's records begin. ApiError as in KIP-631, the first that applies.
    """
    existing = controller.image.cluster.brokers.get(request.broker_id)
    _check_identity(controller, request, existing, now_ms)
    has_directories = controller.has(Behaviour.DIRECTORY_ASSIGNMENT)
    if has_directories:
        _check_log_dirs(controller, request)
    endpoints = _endpoints(BrokerEndpoint, request.listeners)
    features = _checked_features(controller, request)
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=endpoints,
        features=features,
        rack=request.rack,
        log_dirs=list(request.log_dirs) if has_directories else [],
    )
    if has_directories and controller.has(Behaviour.REGISTRATION_CONTAINS_CORDONED_DIRS):
        record.cordoned_log_dirs = list(getattr(request, "cordoned_log_dirs", ()))
    records: list[RecordAt] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        keeps_epoch = controller.has(Behaviour.EPOCH_IS_KEPT)
        record.broker_epoch = existing.broker_epoch if keeps_epoch else controller.log.end_offset
        if not existing.fenced and not keeps_epoch:
            controller.sessions.touch(request.broker_id, record.broker_epoch, now_ms)
        reason = f"broker {request.broker_id}: registration replaced"
    else:
        stored_epoch = _NEVER_REGISTERED_EPOCH if existing is None else existing.broker_epoch
        was_clean = request_version >= CLEAN_SHUTDOWN_SINCE and request.previous_broker_epoch == stored_epoch
        records = fencing.replace_incarnation(controller, request.broker_id, was_clean=was_clean)
        record.broker_epoch = controller.log.end_offset
        reason = f"broker {request.broker_id}: new incarnation"
    records.append(RecordAt(record, controller.image.version.record_versions["RegisterBrokerRecord"]))
    return ControllerResult(records, record.broker_epoch, reason, atomic=False)


def unregister_broker(controller: "ControllerContext", broker_id: int) -> ControllerResult[None]:
    """Unregister a broker. ApiError BROKER_ID_NOT_REGISTERED for an unknown one."""
    if broker_id not in controller.image.cluster.brokers:
        is_named = controller.has(Behaviour.UNKNOWN_BROKER_IS_NAMED)
        message = f"Broker ID {broker_id} is not currently registered" if is_named else ""
        raise ApiError(error_codes.BROKER_ID_NOT_REGISTERED, message)
    return ControllerResult(fencing.unregister(controller, broker_id), None, f"broker {broker_id}: unregistered")


def register_controller(
    controller: "ControllerContext", request: ControllerRegistrationRequest
) -> ControllerResult[None]:
    """Register a controller's endpoints and features. ApiError UNSUPPORTED_VERSION below 3.7-IV0."""
    if not controller.has(Behaviour.CONTROLLER_REGISTRATION):
        raise ApiError(
            error_codes.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=_endpoints(ControllerEndpoint, request.listeners),
        features=_features(ControllerFeature, levels_of(request.features)),
    )
    return ControllerResult([RecordAt(record, 0)], None, f"controller {request.controller_id}: registered")


def unregister_controller(controller: "ControllerContext", controller_id: int) -> ControllerResult[None]:
    """Remove a controller's registration (QuorumController.unregisterController).

    ApiError INVALID_REQUEST for this controller, since 4.5 any voter, UNSUPPORTED_VERSION below 4.4-IV2,
    CONTROLLER_ID_NOT_REGISTERED.
    """
    if controller.has(Behaviour.VOTERS_STAY_REGISTERED):
        if controller_id in controller.log.voters.nodes:
            message = f"Cannot unregister controller {controller_id} because it is part of the voter set."
            raise ApiError(error_codes.INVALID_REQUEST, message)
    elif controller_id == controller.config.node_id:
        raise ApiError(error_codes.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if not controller.has(Behaviour.CONTROLLER_UNREGISTRATION):
        raise ApiError(
            error_codes.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller unregistration.",
        )
    if controller_id not in controller.image.cluster.controllers:
        raise ApiError(
            error_codes.CONTROLLER_ID_NOT_REGISTERED, f"Controller ID {controller_id} is not currently registered."
        )
    record = UnregisterControllerRecord(controller_id=controller_id)
    return ControllerResult([RecordAt(record, 0)], None, f"controller {controller_id}: unregistered")


def registration_of(controller: "ControllerContext") -> ControllerRegistrationRequest:
    """Return this controller's registration request."""
    config = controller.config
    return ControllerRegistrationRequest(
        controller_id=config.node_id,
        incarnation_id=controller.incarnation_id,
        listeners=[
            ControllerListener(
                name=config.controller_listener_name,
                host=config.voter_host,
                port=config.voter_port,
                security_protocol=SECURITY_PROTOCOLS[config.security_protocol],
            )
        ],
        features=[
            OwnFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in controller.supported_features().items()
        ],
    )


def _check_identity(
    controller: "ControllerContext",
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    now_ms: int,
) -> None:
    cluster_id = controller.config.cluster_id
    if request.cluster_id != cluster_id:
        raise ApiError(
            error_codes.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {request.cluster_id}",
        )
    # The session decides, not the fencing: a broker that just shut down keeps its id until the session expires.
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and controller.sessions.is_valid(existing.broker_id, existing.broker_epoch, now_ms)
        and (not existing.fenced or controller.has(Behaviour.FENCED_BROKERS_KEEP_THEIR_SESSION))
    ):
        raise ApiError(
            error_codes.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise ApiError(error_codes.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")


def _check_log_dirs(controller: "ControllerContext", request: BrokerRegistrationRequest) -> None:
    def refuse(message: str) -> ApiError:
        return ApiError(error_codes.INVALID_REGISTRATION, message)

    if not request.log_dirs:
        raise refuse("No directories specified in request")
    if any(map(directory_ids.is_reserved, request.log_dirs)):
        raise refuse("Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise refuse("Duplicate directory ID in request")
    for directory in request.log_dirs:
        owner = controller.image.cluster.broker_by_directory.get(directory)
        if owner is not None and owner != request.broker_id:
            raise refuse(f"Broker {owner} is already registered with directory {uuids.text_of(directory)}")


def _endpoints(
    endpoint: Callable[..., PartT], listeners: Sequence[Listener] | Sequence[ControllerListener]
) -> list[PartT]:
    """Return a record's endpoints, one by name. Kafka fails on a listener that it cannot write there (ListenerInfo)."""
    by_name: dict[str, PartT] = {}
    for each in listeners:
        if not 0 <= each.security_protocol <= _SECURITY_PROTOCOL_MAX:
            raise _unwritable(f"Unknown security protocol {each.security_protocol} in listener {each.name}")
        if each.port == 0:
            raise _unwritable("Cannot serialize ephemeral port 0 in ListenerInfo.")
        if isinstance(each, Listener) and not each.name:
            raise _unwritable("Broker listeners must be named.")
        if not trim(each.host):
            raise _unwritable("Cannot serialize empty host in ListenerInfo.")
        by_name[each.name] = endpoint(
            name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
        )
    return list(by_name.values())


def _features(feature: Callable[..., PartT], levels: Levels) -> list[PartT]:
    """Return a record's features."""
    return [
        feature(name=name, min_supported_version=lowest, max_supported_version=highest)
        for name, lowest, highest in levels
    ]


def _unwritable(message: str) -> ApiError:
    return ApiError(error_codes.UNKNOWN_SERVER_ERROR, message)


def _checked_features(controller: "ControllerContext", request: BrokerRegistrationRequest) -> list[BrokerFeature]:
    """Check the request's features against the finalized levels, and return them for the record. Raises ApiError."""
    finalized = {**controller.image.features}
    if KRAFT_VERSION in controller.release.features:
        finalized[KRAFT_VERSION] = controller.log.kraft_version
    return [*_record_features(request.features, tuple(finalized.items()), controller.release)]


@kept_by_features
def _record_features(levels: Levels, finalized: tuple[tuple[str, int], ...], release: Release) -> list[BrokerFeature]:
    """Return a record's features. Raises ApiError if a level is outside the node's range (0 to 0 if it names none)."""
    level_of = dict(finalized)
    checks_unknown = release.has(Behaviour.UNKNOWN_FEATURES_ARE_CHECKED)
    named = set()
    for name, lowest, highest in levels:
        named.add(name)
        level = level_of.get(name)
        if not lowest <= (level or 0) <= highest and (checks_unknown or level is not None):
            raise _unsupported(name, level or 0, lowest, highest)
    if METADATA_VERSION not in named:
        level = level_of[METADATA_VERSION]
        if level != 1 and not release.has(Behaviour.MISSING_METADATA_VERSION_IS_INVALID):
            raise _unsupported(METADATA_VERSION, level, 1, 1)
        raise ApiError(error_codes.INVALID_REGISTRATION, f"Request features do not contain '{METADATA_VERSION}'")
    for name, level in finalized:
        if name not in named and level:
            raise _unsupported(name, level, 0, 0)
    return _features(BrokerFeature, levels)


def _unsupported(name: str, level: int, lowest: int, highest: int) -> ApiError:
    return ApiError(
        error_codes.UNSUPPORTED_VERSION,
        f"Unable to register because the broker does not support finalized version {level} of {name}. "
        f"The broker wants a version between {lowest} and {highest}, inclusive.",
    )
