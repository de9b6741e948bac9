"""The release options of `mockraft serve`: metadata.version, and the APIs of another Kafka release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockraft.commands.serve.options import OptionError


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return `metadata_version` and `api_versions` as ControllerConfig takes them. OptionError names the wrong one."""
    from mockraft.server.controller.settings.features import METADATA_VERSION, metadata_version_level
    from mockraft.server.controller.settings.releases import feature_ranges, read_ranges, release_of

    hint = "--as-version"
    try:
        level, release = options["metadata_version"], options["as_version"]
        newest = None if release is None else feature_ranges(release_of(release))[METADATA_VERSION][1]
        hint = "--metadata-version"
        metadata_version = metadata_version_level(level or (str(newest) if newest else "4.3-IV0"))
        hint = "--api-versions"
        pairs = [text.partition("=") for text in options["api_versions"] or ()]
        ranges = read_ranges({api: value for api, _, value in pairs})
    except ValueError as error:
        raise OptionError(str(error), hint) from error
    return {"metadata_version": metadata_version, "api_versions": ranges}
