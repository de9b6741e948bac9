"""Requests and records that change configs."""

from typing import TypeAlias

from mockraft.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


Resource: TypeAlias = tuple[int, str, *tuple[tuple[int, str, str | None], ...]]
"""Type, name, and any number of (operation, key, value)."""


def change_configs(*resources: Resource, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    """A request with these changes."""
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
