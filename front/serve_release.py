"""The options of `mockraft serve` for passing for another Kafka release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

AsVersion = Annotated[
    str | None, typer.Option(help="Pass for a controller of this Kafka release (3.7 to 4.3): its APIs and features.")
]
ApiVersions = Annotated[
    list[str] | None,
    typer.Option(metavar="API=MIN-MAX", help="Versions that an API offers, by its name or key; API=off for none."),
]


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """`metadata_version` and `api_versions` as ControllerConfig has them; BadParameter says what cannot be read."""
    from mockraft.server.controller.features import METADATA_VERSION, metadata_version_level
    from mockraft.server.controller.releases import feature_ranges, read_ranges, release_of

    hint = "--as-version"
    try:
        level, release = options["metadata_version"], options["as_version"]
        newest = None if release is None else feature_ranges(release_of(release))[METADATA_VERSION][1]
        hint = "--metadata-version"
        metadata_version = metadata_version_level(level or (str(newest) if newest else "4.3-IV0"))
        hint = "--api-versions"
        said = [text.partition("=") for text in options["api_versions"] or ()]
        ranges = read_ranges({api: value for api, _, value in said})
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error
    return {"metadata_version": metadata_version, "api_versions": ranges}
