"""Requests and records that change configs."""

from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def change_configs(
    *resources: tuple[int, str, *tuple[tuple[int, str, str | None], ...]], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    """Resources as (type, name, *(operation, key, value))."""
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, config_operation=op, value=value) for op, key, value in changes],
            )
            for kind, name, *changes in resources
        ],
        validate_only=validate_only,
    )


def config_record(kind: int, name: str, key: str, value: str | None) -> RecordAt:
    """A ConfigRecord as it is written."""
    return RecordAt(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value), 0)
