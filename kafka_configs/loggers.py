"""The loggers of a node, which are the configs of a BROKER_LOGGER (KIP-412, RuntimeLoggerManager, LoggingController).

They are mockraft's own in this process, so all nodes in it have the same. `root` is the logger `mockraft`: a request
does not change the loggers of the program around it. Python has no TRACE, which is 5 here; FATAL is its CRITICAL.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from mockraft.kafka_configs.config_values import ConfigSource, Operation, invalid_config
from mockraft.kafka_configs.described_configs import DescribedConfig, SynonymValue
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.messages.incremental_alter_configs_request import AlterableConfig

_ROOT: Final = "root"
_OURS: Final = "mockraft"
_LEVELS: Final = {"FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5}


def describe() -> list[DescribedConfig]:
    """Return the level of each logger, sorted by name."""
    levels = {name: _level_of(name) for name in _names()}
    source = ConfigSource.DYNAMIC_BROKER_LOGGER
    return [
        DescribedConfig(name, level, 0, False, False, [SynonymValue(name, level, source)])
        for name, level in sorted(levels.items())
    ]


def alter(changes: Sequence[AlterableConfig], *, validate_only: bool, names_operations: bool = True) -> None:
    """Change levels, all or none. ApiError; without `names_operations` an unknown one is an unexpected error."""
    for change in changes:
        _check(change, names_operations=names_operations)
    if not validate_only:
        for change in changes:
            level = _LEVELS[change.value or ""] if change.config_operation == Operation.SET else logging.NOTSET
            _logger(change.name).setLevel(level)


def _check(change: AlterableConfig, *, names_operations: bool) -> None:
    operation = change.config_operation
    if operation not in (Operation.SET, Operation.DELETE):
        known = {each.value: f"{each.name} operation" for each in Operation}
        if operation not in known and not names_operations:
            raise ApiError(error_codes.UNKNOWN_SERVER_ERROR, error_codes.message(error_codes.UNKNOWN_SERVER_ERROR))
        name = known.get(operation, f"Unknown operation type {operation}")
        raise ApiError(error_codes.INVALID_REQUEST, f"{name} is not allowed for the BROKER_LOGGER resource")
    if change.name not in _names():
        raise invalid_config(f"Logger {change.name} does not exist!")
    if operation == Operation.SET and change.value not in _LEVELS:
        raise invalid_config(
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. Valid"
            f" log levels are {', '.join(sorted(_LEVELS))}"
        )
    if operation == Operation.DELETE and change.name == _ROOT:
        raise ApiError(error_codes.INVALID_REQUEST, f"Removing the log level of the {_ROOT} logger is not allowed")


def _names() -> set[str]:
    found = logging.root.manager.loggerDict.items()
    return {_ROOT, *(n for n, each in found if n.startswith(f"{_OURS}.") and isinstance(each, logging.Logger))}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_OURS if name == _ROOT else name)


def _level_of(name: str) -> str:
    effective = _logger(name).getEffectiveLevel()
    return next((level for level, number in _LEVELS.items() if number <= effective), "TRACE")
