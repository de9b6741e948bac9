"""The table of APIs as an Offer wants it: what ApiVersions says and which versions are taken.

A version that Kafka's release has and mockraft's messages have not (Kafka 4.0 dropped many, KIP-896) is offered, as
that release does; a request in it is refused by closing, with the reason in the journal.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockraft.server.apis.api import Api
from mockraft.server.controller.releases import Offer, api_ranges


def offered(apis: Mapping[int, Api], offer: Offer) -> dict[int, Api]:
    """The APIs that are left, with the versions that are offered; none that mockraft has not is added."""
    ranges = dict(api_ranges(offer.release)) if offer.release is not None else {}
    table = {}
    for api_key, api in apis.items():
        own = None if ranges else (api.min_version, api.max_version)
        found = offer.ranges[api_key] if api_key in offer.ranges else ranges.get(api_key, own)
        if found is not None:
            table[api_key] = api._replace(min_version=found[0], max_version=found[1])
    return table
