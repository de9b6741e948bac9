"""Apply an Offer to the table of APIs: the versions that ApiVersions lists and that are accepted.

A version that Kafka's release has and mockraft's messages have not (Kafka 4.0 dropped many, KIP-896) is offered, as
that release does; a request in it closes the connection, with the reason in the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mockraft.server.apis.api import AnyApi
from mockraft.server.controller.settings.releases import Offer, api_ranges


def offered(apis: Mapping[int, AnyApi], offer: Offer) -> dict[int, AnyApi]:
    """Return the remaining APIs with their offered versions; APIs unknown to mockraft are not added."""
    ranges = dict(api_ranges(offer.release)) if offer.release is not None else {}
    table = {}
    for api_key, api in apis.items():
        own = None if ranges else (api.min_version, api.max_version)
        found = offer.ranges[api_key] if api_key in offer.ranges else ranges.get(api_key, own)
        if found is not None:
            table[api_key] = replace(api, min_version=found[0], max_version=found[1])
    return table
