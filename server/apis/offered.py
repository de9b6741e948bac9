"""Apply an Offer to the table of APIs: the versions that ApiVersions lists and that are accepted.

A version that Kafka's release has and mockraft's messages have not (Kafka 4.0 dropped many, KIP-896) is offered, as
that release does; a request in it closes the connection, with the reason in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING

from mockraft.server.apis.api import AnyApi
from mockraft.server.controller.settings.offers import Offer
from mockraft.wire import api_keys
from mockraft.wire.errors import WireError

if TYPE_CHECKING:
    from mockraft.wire.connection import Request
    from mockraft.wire.message import Message, MessageLookup


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


def body_without_api(
    request: Request, apis: Container[int], messages: MessageLookup, api_name: Callable[[int], str]
) -> Message:
    """Return the body for an unknown ApiVersions version; raise WireError for every other API that is not offered."""
    if request.api_key == api_keys.API_VERSIONS:
        return messages.request(api_keys.API_VERSIONS)()
    name = api_name(request.api_key)
    if request.api_key not in apis:
        raise WireError(f"API {name} ({request.api_key}) is not served on this listener")
    raise WireError(f"{name} ({request.api_key}) has no version {request.api_version} here")
