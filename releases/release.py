"""A Kafka release as a value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from mockraft.releases.behaviour import METADATA_VERSION, Behaviour, present
from mockraft.wire import spec_files

SUPPORTED = ("3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
"""The newest patch release of each supported line, the oldest first."""

OLDER_PATCHES = ("3.9.1", "4.0.1", "4.1.0", "4.2.1")
"""Patch releases whose tables differ from those of the newest of their line, as those before them in the line do."""

PREVIEW = "4.5.0"
"""The release that Kafka's trunk becomes: the tables of `NEWEST`, and the rules that are known to change."""

NEWEST = SUPPORTED[-1]
"""The Kafka version that `wire.messages` and `wire.records` are generated from."""

DEFAULT = "4.4"
"""The release that a controller is of if it is not told another one."""


class MetadataVersion(NamedTuple):
    """One metadata.version: its feature level, Kafka's name for it and what its release's class says of it.

    `supports` has, in snake case, the true ones of its `is…Supported` methods. They are compared between releases, and
    with the rows of `Behaviour`, which `has` asks.
    """

    level: int
    name: str
    release: str
    metadata_changed: bool
    supports: frozenset[str]
    leader_epoch_bump_on_isr_shrink: bool
    record_versions: Mapping[str, int]
    default_levels: Mapping[str, int]

    def has(self, behaviour: Behaviour) -> bool:
        """Return True if this level alone brings the behaviour."""
        return behaviour in present(levels=((METADATA_VERSION, self.level),))


class Feature(NamedTuple):
    """Supported levels of a feature; `dependencies[level]` = {other feature: lowest level}.

    `unstable_max_level` is the highest level if unstable ones are enabled.
    """

    min_level: int
    max_level: int
    unstable_max_level: int
    dependencies: Mapping[int, Mapping[str, int]]


class Release:
    """One release. `name` is "3.9", `kafka_version` "3.9.2"; everything else is read when it is first asked for.

    The name of a patch release that is not the newest of its line is its version, "3.9.1"; `line` is always "3.9".
    `release` makes one object for each, so releases are compared by identity. `root` is a folder as `make sync`
    writes it; None is mockraft's own.
    """

    def __init__(self, kafka_version: str, root: Traversable | None = None) -> None:
        self.kafka_version = kafka_version
        self.line = kafka_version.rpartition(".")[0]
        is_newest = root is not None or kafka_version in (*SUPPORTED, PREVIEW)
        self.name = self.line if is_newest else kafka_version
        self._root = root

    @cached_property
    def features(self) -> Mapping[str, Feature]:
        """Every feature that its controllers support, metadata.version first (QuorumFeatures)."""
        unstable = [row["level"] for row in self._features["unstable_metadata_versions"]]
        return {
            name: Feature(
                row["min"],
                row["max"],
                row.get("unstable_max", max(unstable, default=row["max"])),
                {int(level): needs for level, needs in row["dependencies"].items()},
            )
            for name, row in self._features["features"].items()
        }

    def feature_ranges(self, *, unstable: bool = False) -> dict[str, tuple[int, int]]:
        """Return the range of levels of every feature, with or without those that are not ready."""
        return {
            name: (feature.min_level, feature.unstable_max_level if unstable else feature.max_level)
            for name, feature in self.features.items()
        }

    @cached_property
    def metadata_versions(self) -> Mapping[int, MetadataVersion]:
        """Every production metadata.version by its feature level, lowest first."""
        return self._metadata_versions("metadata_versions")

    @cached_property
    def unstable_metadata_versions(self) -> Mapping[int, MetadataVersion]:
        """Every further metadata.version, which Kafka accepts with unstable.feature.versions.enable."""
        return self._metadata_versions("unstable_metadata_versions")

    def metadata_version(self, level: int) -> MetadataVersion:
        """Return the metadata.version of a level; one that this release does not have is the newest release's.

        ValueError with Kafka's message for a level that no release has.
        """
        found = self.metadata_versions.get(level) or self.unstable_metadata_versions.get(level)
        if found is not None:
            return found
        if self.kafka_version != NEWEST:
            return _of(NEWEST).metadata_version(level)
        low, high = min(self.metadata_versions), max(self.metadata_versions)
        raise ValueError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {low} to {high}."
        )

    @cached_property
    def config_tables(self) -> Mapping[str, Any]:
        """Configuration keys by resource type, and `topic_synonyms`: the rows of configs.json."""
        tables: Mapping[str, Any] = self._read("configs.json")
        return tables

    @cached_property
    def error_messages(self) -> Mapping[int, str]:
        """Kafka's text of each error code; empty for NONE."""
        return {row["code"]: row["message"] for row in self._read("errors.json")}

    @cached_property
    def error_names(self) -> Mapping[int, str]:
        """Kafka's name of each error code: `{41: "NOT_CONTROLLER"}`."""
        return {row["code"]: row["name"] for row in self._read("errors.json")}

    @cached_property
    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """Lowest and highest version of each API, by key, that its controllers offer."""
        return {int(api_key): (low, high) for api_key, (low, high) in self._read("api_versions.json").items()}

    @cached_property
    def specs(self) -> Mapping[str, str]:
        """Text of each message spec by path: `message/FetchRequest.json`."""
        if self._root is None:
            return spec_files.shipped(self._holders[0])
        return spec_files.read(self._root, self.kafka_version)

    def is_since(self, name: str) -> bool:
        """Return True if this is the release of that name ("4.1") or a later one."""
        return spec_files.sort_key(self.kafka_version) >= spec_files.sort_key(name)

    def has(self, behaviour: Behaviour) -> bool:
        """Return True if all of its controllers have this, whatever their levels are."""
        return behaviour in present(self.kafka_version)

    def behaviours(self, levels: Mapping[str, int], proposals: frozenset[str] = frozenset()) -> frozenset[Behaviour]:
        """Return what its controllers have at these levels of features, with these proposals."""
        return present(self.kafka_version, tuple(levels.items()), proposals)

    def _metadata_versions(self, table: str) -> Mapping[int, MetadataVersion]:
        rows = self._features[table]
        return {row["level"]: MetadataVersion(**row | {"supports": frozenset(row["supports"])}) for row in rows}

    @cached_property
    def _features(self) -> Any:
        return self._read("features.json")

    def _read(self, file: str) -> Any:
        if self._root is not None:
            return json.loads((self._root / self.kafka_version / file).read_bytes())
        return spec_files.table(self._holders, file)

    @property
    def _holders(self) -> list[str]:
        """The versions in `mockraft.schemas_json` that have its tables: the first one with a file has the right one."""
        known = sorted((*OLDER_PATCHES, *SUPPORTED), key=spec_files.sort_key)
        key = spec_files.sort_key(self.kafka_version)
        return [each for each in known if spec_files.sort_key(each) >= key] or [NEWEST]

    def __repr__(self) -> str:
        return f"<Kafka {self.name}>"


@cache
def release(text: str = DEFAULT) -> Release:
    """Return the release of a version; ValueError lists the supported ones.

    "3.9" and "v3.9" are the newest patch release of that line that mockraft knows, as is any newer one. An older one,
    "3.9.1", is itself.
    """
    if not isinstance(text, str):
        raise TypeError(f'release={text!r}: it must be a text, as in "3.9"')
    named = re.fullmatch(r"v?(\d+\.\d+)(\.\d+)?(-\w+)?", text)
    newest = named and next((each for each in (*SUPPORTED, PREVIEW) if each.rpartition(".")[0] == named[1]), None)
    if named is None or newest is None:
        known = ", ".join(each.rpartition(".")[0] for each in SUPPORTED)
        preview = PREVIEW.rpartition(".")[0]
        raise ValueError(f"{text!r} is not a Kafka release that mockraft knows: {known} ({preview} as a preview)")
    asked = named[1] + named[2] if named[2] else newest
    return _of(min(asked, newest, key=spec_files.sort_key))


@cache
def metadata_version(level: int) -> MetadataVersion:
    """Return the metadata.version of a feature level, which means the same in every release; ValueError if unknown."""
    known = (of for of in map(_of, reversed(SUPPORTED)) if level in of.metadata_versions)
    return next(known, _of(NEWEST)).metadata_version(level)


@cache
def _of(kafka_version: str) -> Release:
    return Release(kafka_version)
