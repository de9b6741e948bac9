"""Check of ApiVersions requests (18) that controllers and brokers share."""

from __future__ import annotations

import re

from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN."""


def is_valid(request: ApiVersionsRequest, version: int) -> bool:
    """Return True if the client software's name and version are valid (ApiVersionsRequest.isValid).

    Since version 5 also a cluster id and a node id (-1: none) are given together or not at all.
    """
    if version >= 5 and (request.cluster_id is None) != (request.node_id == -1):
        return False
    names = (request.client_software_name, request.client_software_version)
    return version < 3 or all(_SOFTWARE.fullmatch(name) for name in names)
