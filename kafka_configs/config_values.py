"""Parsing and validation of configuration values, with Kafka's messages (ConfigDef.parseType and its validators)."""

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Final

from mockraft.kafka_configs.config_keys import DEFAULT_RELEASE, ConfigKey, Validator, keys
from mockraft.releases import Release
from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.java_values import double_text, parse_integer, split_trimmed, trim

_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}
_DECIMAL: Final = re.compile(r"([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?", re.ASCII)
_THROTTLED_REPLICA: Final = re.compile(r"(?:\d+:\d+)?", re.ASCII)
_LEVELS_OR_DEFAULT: Final = re.compile(r"\[(-?\d+),\.\.\.,(-?\d+)\] or (-?\d+)")
_DURATION: Final = re.compile(
    r"[+-]?P(?=.)(?:[+-]?\d+D)?(?:T(?=.)(?:[+-]?\d+H)?(?:[+-]?\d+M)?(?:[+-]?\d+(?:[.,]\d{0,9})?S)?)?",
    re.ASCII | re.IGNORECASE,
)


class ConfigSource(IntEnum):
    """Source of a value, by its number in DescribeConfigs and CreateTopics responses."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Operation(IntEnum):
    """Operation of IncrementalAlterConfigs on a value (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def invalid_value(name: str, value: object, why: str) -> ApiError:
    """Return the error INVALID_CONFIG with a ConfigException's message."""
    return invalid_config(f"Invalid value {shown(value)} for configuration {name}: {why}")


def invalid_config(message: str) -> ApiError:
    """Return the error INVALID_CONFIG with a message."""
    return ApiError(error_codes.INVALID_CONFIG, message)


def shown(value: object) -> str:
    """Return a parsed value as Java prints it."""
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    if isinstance(value, float):
        return double_text(value)
    return str(value)


def parse_all(
    resource_type: int,
    values: Mapping[str, str],
    of: Release = DEFAULT_RELEASE,
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Parse and check every key's value, given or default, in the order of the keys. Raises ApiError at once.

    `defaults` are parsed values of all keys, in place of Kafka's.
    BOOLEAN gives bool, the integers int, DOUBLE float, LIST a list of str, all else str; no default gives None.
    """
    if defaults is None:
        defaults = _defaults(resource_type, of)
    if not values:
        return {**defaults}
    return {
        **defaults,
        **{name: parse(key, values[name]) for name, key in keys(resource_type, of).items() if name in values},
    }


@cache
def _defaults(resource_type: int, of: Release) -> Mapping[str, Any]:
    return {name: parse(key, key.default) for name, key in keys(resource_type, of).items()}


def parse(key: ConfigKey, text: str | None) -> Any:
    """Parse one value and check it with its key's validator. Raises ApiError(INVALID_CONFIG)."""
    value = None if text is None else _parse_type(key, text)
    if isinstance(value, list) and key.validator is not None and key.validator["kind"] == "ValidList":
        value = list(dict.fromkeys(value))
    _validate(key, value)
    return value


def check(key: ConfigKey, text: str) -> None:
    """Check a value as brokers check dynamic ones: a list may not repeat a value. Raises ApiError(INVALID_CONFIG)."""
    _validate(key, _parse_type(key, text))


def _validate(key: ConfigKey, value: object) -> None:
    if key.validator is not None and (validator := _CHECKS.get(key.validator["kind"])) is not None:
        validator(key.name, value, key.validator)


def parse_property(key: ConfigKey, text: str) -> Any:
    """Parse a value of a properties file. Raises ValueError."""
    try:
        return parse(key, text)
    except ApiError as error:
        raise ValueError(f"{key.name}={text}: {error.message}") from error


def converted(value: str, factor: int) -> str:
    """Convert a broker key's value to the topic key's unit, which is `factor` times smaller; "0" if it is no number."""
    if factor == 1:
        return value
    return str((parse_integer(trim(value)) or 0) * factor)


def _parse_type(key: ConfigKey, text: str) -> bool | float | str | list[str]:
    trimmed = trim(text)
    if key.type == "BOOLEAN":
        if trimmed.lower() not in ("true", "false"):
            raise invalid_value(key.name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if key.type in _BITS:
        number = parse_integer(trimmed, _BITS[key.type])
        if number is None:
            raise invalid_value(key.name, text, f"Not a number of type {key.type}")
        return number
    if key.type == "DOUBLE":
        match = _DECIMAL.fullmatch(trimmed)
        if match is None:
            raise invalid_value(key.name, text, "Not a number of type DOUBLE")
        return float(match[1])
    if key.type == "LIST":
        return split_trimmed(trimmed) if trimmed else []
    return trimmed


def _check_range(name: str, value: float | None, validator: Validator) -> None:
    if value is None:
        raise invalid_value(name, "null", "Value must be non-null")
    if validator["min"] is not None and value < validator["min"]:
        raise invalid_value(name, value, f"Value must be at least {validator['min']}")
    if validator["max"] is not None and value > validator["max"]:
        raise invalid_value(name, value, f"Value must be no more than {validator['max']}")


def _check_string(name: str, value: str | None, validator: Validator) -> None:
    if value not in validator["values"]:
        raise invalid_value(name, value, f"String must be one of: {', '.join(validator['values'])}")


def _check_list(name: str, value: list[str] | None, validator: Validator) -> None:
    if value is None:
        if validator["null_allowed"]:
            return
        raise invalid_config(f"Configuration '{name}' values must not be null.")
    if not value and not validator["empty_allowed"]:
        values = f"[{', '.join(validator['values'])}]" if validator["values"] else "any non-empty value"
        raise invalid_config(f"Configuration '{name}' must not be empty. Valid values include: {values}")
    if len(set(value)) < len(value):
        raise invalid_config(f"Configuration '{name}' values must not be duplicated.")
    for each in value:
        if not each:
            raise invalid_config(f"Configuration '{name}' values must not be empty.")
        if validator["values"]:
            _check_string(name, each, validator)


def _check_throttled_replicas(name: str, value: list[str], _validator: Validator) -> None:
    replicas = [trim(each) for each in value]
    if not all(map(_THROTTLED_REPLICA.fullmatch, replicas)) and "".join(replicas) != "*":
        why = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise invalid_value(name, value, why)


def _check_level(name: str, value: int, validator: Validator) -> None:
    levels = _LEVELS_OR_DEFAULT.fullmatch(validator["says"])
    if levels is None:
        return
    low, high, default = map(int, levels.groups())
    if not low <= value <= high and value != default:
        raise invalid_value(name, value, f"Value must be between {low} and {high} or equal to {default}")


def _check_version(name: str, value: str, validator: Validator) -> None:
    known = validator["says"].strip("[]").split(", ")
    segments = value.split(".")
    wanted = ".".join(segments[: 3 if value.startswith("0.") else 2])
    if wanted not in known and not any(each.startswith(f"{wanted}-") for each in known):
        raise invalid_value(name, value, f"Version {value} is not a valid version")


def _check_offset_reset(name: str, value: str, validator: Validator) -> None:
    kind, colon, duration = value.partition(":")
    if value in ("earliest", "latest") or (kind == "by_duration" and colon and _is_positive_duration(duration)):
        return
    seconds = "nS." if validator["says"].startswith("[earliest") else "nS"  # a slip of Kafka 4.0
    why = (
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of the "
        f"format 'by_duration:<PnDTnHnMn.{seconds}>'."
    )
    raise invalid_value(name, value, why)


def _is_positive_duration(text: str) -> bool:
    return _DURATION.fullmatch(text) is not None and any(map(str.isdigit, text)) and seconds_of(text) >= 0


def seconds_of(duration: str) -> float:
    """Return the length of a valid duration in the form of ISO 8601, such as `PT1.5S`."""
    units = {"D": 86_400, "H": 3_600, "M": 60, "S": 1}
    parts = re.findall(r"([+-]?[\d.,]+)([DHMS])", duration.upper())
    seconds = sum(float(number.replace(",", ".")) * units[unit] for number, unit in parts)
    return -seconds if duration.startswith("-") else seconds


_CHECKS: Final[dict[str, Callable[[str, Any, Validator], None]]] = {
    "Range": _check_range,
    "ValidString": _check_string,
    "ValidList": _check_list,
    "ThrottledReplicaListValidator": _check_throttled_replicas,
    "": _check_level,
    "LambdaValidator": _check_level,
    "MetadataVersionValidator": _check_version,
    "Validator": _check_offset_reset,
}
"""Checks by validator class; those of broker keys that a controller never checks are left out."""
