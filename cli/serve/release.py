"""The release options of `mockraft serve`: the release, its metadata.version and features, versions of single APIs.

And server properties, whose keys are those of the release.
"""

from __future__ import annotations

import logging
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mockraft.cli.serve.options import OPTIONS
from mockraft.kafka_api.options import blaming
from mockraft.releases import NEWEST, PREVIEW, SUPPORTED, metadata_version, release
from mockraft.server import server_properties
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.image.settings import METADATA_VERSION_MIN
from mockraft.server.controller.settings.features import (
    initial_levels,
    levels_for_simulated_brokers,
    metadata_version_level,
)
from mockraft.server.controller.settings.offers import read_ranges

if TYPE_CHECKING:
    from mockraft.releases import Release

_log = logging.getLogger("mockraft.serve")


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as ControllerConfig takes them. OptionError names the wrong one."""
    with blaming("--release"):
        chosen = release(options["release"])
    own, others = _properties(options, chosen) if options["server_properties"] else ({}, {})
    unstable, level = (options | own)["unstable_feature_versions_enable"], 0
    with blaming("--metadata-version"):
        if options["metadata_version"]:
            level = metadata_version_level(options["metadata_version"], chosen, unstable=unstable)
    with blaming("--feature"):
        features = dict(map(feature_level, options["features"] or ()))
        if options.get("brokers"):
            features = levels_for_simulated_brokers(chosen, features, level)
        initial_levels(chosen, level, features, unstable=unstable)
    with blaming("--api-versions"):
        pairs = [text.partition("=") for text in options["api_versions"] or ()]
        ranges = read_ranges({api: value for api, _, value in pairs})
    return own | {
        "release": chosen.name,
        "metadata_version": level,
        "features": features,
        "api_versions": ranges,
        "server_properties": others,
    }


def _properties(options: dict[str, Any], chosen: Release) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what --server-property sets: options by name, and properties without one."""
    with blaming("--server-property"):
        given = dict(map(_property, options["server_properties"]))
        own, others = server_properties.fields_and_others(
            given, chosen, fields(ControllerConfig), lambda field: OPTIONS[field].flag
        )
        for name, value in own.items():
            if name in options["given"] and options[name] != value:
                key, flag = server_properties.property_of(name), OPTIONS[name].flag
                other = ",".join(options[name]) if isinstance(value, tuple) else options[name]
                raise ValueError(f"{key}={given[key]} contradicts {flag} {other}; give one of them")
    return own, others


def log_oddities(level: int | None, config: ControllerConfig) -> None:
    """Log that the release is a preview, and that a log has the metadata.version of an older release."""
    if release(config.release).kafka_version == PREVIEW:
        _log.warning(
            "Kafka %s is not released: this is Kafka %s with the rules that are known to change", config.release, NEWEST
        )
    if level is None or not METADATA_VERSION_MIN <= level < config.metadata_version:
        return

    older = next((of for of in map(release, SUPPORTED) if level in of.metadata_versions), None)
    if older is None or older.name == config.release:
        return
    own, new = metadata_version(level), metadata_version(config.metadata_version)
    _log.info(
        "the log's metadata.version is %s (%d), and a new log of Kafka %s begins with %s (%d);"
        " for a controller of its release start with --release %s",
        *(own.name, own.level, config.release, new.name, new.level, older.name),
    )


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not KEY=VALUE, as in group.streams.max.heartbeat.interval.ms=20000")
    return key.strip(), value


def feature_level(text: str) -> tuple[str, int]:
    """Parse NAME=LEVEL. Raises ValueError."""
    name, _, level = text.partition("=")
    if not level.isdecimal():
        raise ValueError(f"{text!r} is not NAME=LEVEL, as in group.version=0")
    return name, int(level)
