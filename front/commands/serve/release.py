"""The release options of `mockraft serve`: metadata.version, and the APIs of another Kafka release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockraft.commands.serve.options import blaming


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return `metadata_version` and `api_versions` as ControllerConfig takes them. OptionError names the wrong one."""
    from mockraft.server.controller.settings.features import METADATA_VERSION, metadata_version_level
    from mockraft.server.controller.settings.releases import feature_ranges, read_ranges, release_of

    level, release, newest = options["metadata_version"], options["as_version"], None
    if release is not None:
        with blaming("--as-version"):
            newest = feature_ranges(release_of(release))[METADATA_VERSION][1]
    with blaming("--metadata-version"):
        metadata_version = metadata_version_level(level or (str(newest) if newest else "4.3-IV0"))
    with blaming("--api-versions"):
        pairs = [text.partition("=") for text in options["api_versions"] or ()]
        ranges = read_ranges({api: value for api, _, value in pairs})
    return {"metadata_version": metadata_version, "api_versions": ranges}
