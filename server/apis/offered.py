"""Apply an Offer to the table of APIs: the versions that ApiVersions lists and that are accepted.

A version that Kafka's release has and mockraft's messages have not (Kafka 4.0 dropped many, KIP-896) is offered, as
that release does; a request in it closes the connection, with the reason in the journal.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from mockraft.server.apis.api import AnyApi
from mockraft.server.controller.settings.offers import Offer


def offered(apis: Mapping[int, AnyApi], offer: Offer, proposed: Container[int] = ()) -> dict[int, AnyApi]:
    """Return the remaining APIs with their offered versions; APIs unknown to mockraft are not added.

    `proposed` are the keys of APIs that a proposal adds or changes: they have the versions of its messages.
    """
    table = {}
    for api_key, api in apis.items():
        own = api.versions if api_key in proposed else offer.release.api_versions.get(api_key)
        found = offer.ranges.get(api_key, own)
        if found is not None:
            table[api_key] = api.in_versions(*found)
    return table
