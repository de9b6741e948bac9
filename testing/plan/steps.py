"""The steps of a plan, from a YAML or JSON file or from a list.

A step is a mapping with one key, its kind:

    - upgrade: {metadata.version: 4.4}           a level, or for metadata.version a release or name
    - unregister: [3]
    - lose: [2]                                  brokers that die, by id
    - lose_rack: a                               all brokers of a rack
    - lose_directory: {broker: 1, directory: 0}  its number, or its id
    - restore_directory: {broker: 1, directory: 0}   its id, or its number among the failed ones; the broker restarts
    - shut_down: [2]                             controlled
    - start: [2]                                 any registered broker that does not run
    - start: {brokers: [5], release: 4.4}        with the features of another release, or features: {name: [min, max]},
                                                 rack: a, directories: [ID], as one that is not registered needs them,
                                                 or these three by broker: each: {5: {rack: a}}; together: true
    - restart: all                               one after the other: controlled, until nothing changes any more
    - restart: {brokers: [1, 2], together: true, release: 4.4}   at the same time; as brokers of another release
    - drain: [3]                                 move all its replicas to other brokers
    - drain: {brokers: [3], topics: [t]}         only those of some topics
    - reassign: {topic: t, partition: 0, replicas: [1, 2]}   null cancels the reassignment in progress
    - replication_factor: {topic: t, factor: 3}  without a topic: all
    - config: {topic: t, set: {min.insync.replicas: 1}}   or broker: 1, or broker: default; a null value removes it
    - elect: {topic: t, partition: 0, unclean: true}   without unclean: the preferred leader
    - wait: 60                                   seconds
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from mockraft.files.trees import read_tree
from mockraft.releases import METADATA_VERSION, release
from mockraft.wire import uuids
from mockraft.wire.names import did_you_mean

_NUMBER_MAX: Final = 2**31 - 1
_LEVEL_MAX: Final = 2**15 - 1
_IDS_SHOWN: Final = 8

T = TypeVar("T")
Reader: TypeAlias = Callable[[object], Any]
"""Returns an argument as a step has it. Raises ValueError for one that does not fit."""


class PlanError(ValueError):
    """Raised for a plan that cannot be read; the message has the step's number."""


class Step(NamedTuple):
    """One step: its kind, and its argument, a list of broker ids or a mapping."""

    kind: str
    argument: Any

    def __str__(self) -> str:
        argument = self.argument
        if isinstance(argument, dict) and "brokers" in argument:
            shown = (_shown(name, value) for name, value in argument.items() if name not in ("brokers", "each"))
            argument = ", ".join([_ids_text(argument["brokers"]), *filter(None, shown)])
        if isinstance(argument, dict):
            argument = " ".join(f"{key} {_value_text(value)}" for key, value in argument.items())
        elif isinstance(argument, list):
            argument = _ids_text(argument)
        return f"{self.kind.replace('_', ' ')} {argument}"


def _shown(name: str, value: object) -> str:
    """Return an option with its value, if this is short."""
    if name in ("features", "directories"):
        return f"its {name}"
    if isinstance(value, bool):
        return name if value else ""
    return f"{name} {' '.join(value) if isinstance(value, list) else value}"


def _ids_text(ids: list[int] | str) -> str:
    """Return broker ids, the first ones if there are many."""
    if isinstance(ids, str):
        return ids
    more = f" and {len(ids) - _IDS_SHOWN} more" if len(ids) > _IDS_SHOWN else ""
    return ", ".join(map(str, ids[:_IDS_SHOWN])) + more


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_value_text(each)}" for key, each in value.items())
    return "null" if value is None else str(value)


def read_plan(path: Path) -> list[Step]:
    """Read a plan file, YAML unless its name ends in .json. GivenFileError, PlanError."""
    given = read_tree(path, ".yaml")
    try:
        return steps_of(given.tree)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


def steps_of(tree: object) -> list[Step]:
    """Return the steps in a list, or in a mapping's `steps`; there may be none. PlanError."""
    if isinstance(tree, dict) and (other := [str(key) for key in tree if key != "steps"]):
        raise PlanError(f"a plan has only `steps`, not {', '.join(other)}")
    found = tree.get("steps") if isinstance(tree, dict) else tree
    if not isinstance(found, list | tuple):
        raise PlanError("a plan is a list of steps, or has one as its `steps`")
    return [each if isinstance(each, Step) else _step(number, each) for number, each in enumerate(found, start=1)]


def _step(number: int, tree: object) -> Step:
    if not isinstance(tree, dict) or len(tree) != 1:
        raise PlanError(f"step {number}: a step is a mapping with one key, such as `restart: all`, not {tree!r}")
    ((kind, argument),) = tree.items()
    if kind not in _ARGUMENTS:
        raise PlanError(f"step {number}: there is no step {kind!r}; {did_you_mean(str(kind), _ARGUMENTS)}")
    try:
        return Step(kind, _ARGUMENTS[kind](argument))
    except (TypeError, ValueError, KeyError) as error:
        raise PlanError(f"step {number}, {kind}: {error}") from error


def _number(argument: object) -> int:
    if type(argument) is not int or not 0 <= argument <= _NUMBER_MAX:
        raise ValueError(f"it takes a number from 0 to {_NUMBER_MAX}, not {argument!r}")
    return argument


def _text(argument: object) -> str:
    if not isinstance(argument, str):
        raise ValueError(f"it takes a text, not {argument!r}")
    return argument


def _flag(argument: object) -> bool:
    if not isinstance(argument, bool):
        raise ValueError(f"it takes true or false, not {argument!r}")
    return argument


def _number_or_text(argument: object) -> int | str:
    return argument if isinstance(argument, str) else _number(argument)


def _brokers(argument: object) -> list[int]:
    found = argument if isinstance(argument, list) else [argument]
    if not found or not all(type(each) is int and 0 <= each <= _NUMBER_MAX for each in found):
        raise ValueError(f"it takes a list of broker ids, not {argument!r}")
    return _distinct(found)


def _distinct(values: list[T]) -> list[T]:
    seen: set[T] = set()
    for each in values:
        if each in seen:
            raise ValueError(f"{each} is there twice")
        seen.add(each)
    return values


def _of_brokers(**options: Reader) -> Reader:
    """Return a reader of a list of broker ids, or of a mapping with such `brokers` and options."""
    mapping = _mapping({"brokers": _brokers}, options)
    return lambda argument: mapping(argument) if isinstance(argument, dict) else _brokers(argument)


def _texts(argument: object) -> list[str]:
    if not isinstance(argument, list) or not argument:
        raise ValueError(f"it takes a list of texts, not {argument!r}")
    return [_text(each) for each in argument]


def _directory_ids(argument: object) -> list[str]:
    return _distinct([uuids.text_of(uuids.read_text(each)) for each in _texts(argument)])


def _release_name(argument: object) -> str:
    return release(_version(argument)).name


def _version(argument: object) -> str:
    """Return a release or level as text: YAML and JSON read 4.4 as a number, and so 4.10 as 4.1."""
    if isinstance(argument, float) and not re.fullmatch(r"[0-9]\.[0-9]", str(argument)):
        raise ValueError(f"{argument} is no release or level: write it in quotes")
    if isinstance(argument, bool) or not isinstance(argument, float | int | str):
        raise ValueError(f"it takes a release or level, not {argument!r}")
    return str(argument)


def _ranges(argument: object) -> dict[str, list[int]]:
    if not isinstance(argument, dict) or not all(isinstance(r, list) and len(r) == 2 for r in argument.values()):
        raise ValueError(f"it takes a mapping of features to [min, max], not {argument!r}")
    return {str(name): _range(str(name), *ends) for name, ends in argument.items()}


def _range(name: str, low: Any, high: Any) -> list[int]:
    if not all(type(each) is int for each in (low, high)) or not 0 <= low <= high <= _LEVEL_MAX:
        raise ValueError(
            f"{name} is supported from one level to the same or a later one, 0 to 32767, not {[low, high]}"
        )
    return [low, high]


def _by_broker(argument: object) -> dict[int, dict[str, Any]]:
    if not isinstance(argument, dict) or not all(str(each).isdecimal() for each in argument):
        raise ValueError(f"it takes a mapping of broker ids to their options, not {argument!r}")
    return {_number(int(broker_id)): _mapping({}, _REGISTERED)(options) for broker_id, options in argument.items()}


def _restarted(argument: object) -> Any:
    read = _mapping({"brokers": _brokers_or_all}, {"together": _flag, "release": _release_name})
    return read(argument) if isinstance(argument, dict) else _brokers_or_all(argument)


def _brokers_or_all(argument: object) -> list[int] | str:
    return argument if argument == "all" else _brokers(argument)


def _brokers_or_null(argument: object) -> list[int] | None:
    return None if argument is None else _brokers(argument)


def _mapping(
    required: Mapping[str, Reader], optional: Mapping[str, Reader] | None = None
) -> Callable[[object], dict[str, Any]]:
    known = {**required, **(optional or {})}

    def read(argument: object) -> dict[str, Any]:
        if not isinstance(argument, dict) or not required.keys() <= argument.keys() <= known.keys():
            keys = ", ".join([*sorted(required), *(f"{each} (optional)" for each in sorted(optional or ()))])
            raise ValueError(f"it takes a mapping with {keys}, not {argument!r}")
        found = {}
        for key, value in argument.items():
            try:
                found[key] = known[key](value)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from error
        return found

    return read


def _levels(argument: object) -> dict[str, str]:
    if not isinstance(argument, dict) or not argument:
        raise ValueError(f"it takes a mapping of features to levels, not {argument!r}")
    return {str(name): _level(str(name), level) for name, level in argument.items()}


def _level(name: str, level: object) -> str:
    if isinstance(level, float) and name != METADATA_VERSION:
        raise ValueError(f"{name}: a level is a whole number, not {level}")
    return _version(level)


def _configs(argument: object) -> dict[str, str | None]:
    if not isinstance(argument, dict) or not argument:
        raise ValueError(f"it takes a mapping of configs to values, not {argument!r}")
    return {str(key): _config_text(value) for key, value in argument.items()}


def _config_text(value: object) -> str | None:
    if isinstance(value, list):
        return ",".join(str(each) for each in value)
    if isinstance(value, dict):
        raise ValueError(f"a config's value is a text, a number or a list of them, not {value!r}")
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _config(argument: object) -> dict[str, Any]:
    entity: Mapping[str, Reader] = {"broker": _number_or_default}
    if isinstance(argument, dict) and "topic" in argument:
        entity = {"topic": _text}
    return _mapping({**entity, "set": _configs})(argument)


def _number_or_default(argument: object) -> int | str:
    return argument if argument == "default" else _number(argument)


def _seconds(argument: object) -> int:
    if type(argument) is not int or not 0 < argument <= 86_400:
        raise ValueError(f"it takes 1 to 86400 seconds, not {argument!r}")
    return argument


_REGISTERED: Final[Mapping[str, Reader]] = {"features": _ranges, "rack": _text, "directories": _directory_ids}

_ARGUMENTS: Final[Mapping[str, Reader]] = {
    "upgrade": _levels,
    "unregister": _brokers,
    "lose": _brokers,
    "lose_rack": _text,
    "lose_directory": _mapping({"broker": _number, "directory": _number_or_text}),
    "restore_directory": _mapping({"broker": _number, "directory": _number_or_text}),
    "shut_down": _brokers,
    "start": _of_brokers(release=_release_name, together=_flag, each=_by_broker, **_REGISTERED),
    "restart": _restarted,
    "drain": _of_brokers(topics=_texts),
    "reassign": _mapping({"topic": _text, "partition": _number, "replicas": _brokers_or_null}),
    "replication_factor": _mapping({"factor": _number}, {"topic": _text}),
    "config": _config,
    "elect": _mapping({"topic": _text, "partition": _number}, {"unclean": _flag}),
    "wait": _seconds,
}
