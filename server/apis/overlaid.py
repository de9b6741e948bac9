"""The APIs that a controller offers: those that behave as its configuration says, or have an overlay's messages.

A handled API keeps its handler, which reads an overlay's request by Kafka's names (missing fields have defaults); its
response is converted to the overlay's class. A request without a handler is answered with its response's defaults, if
its schema offers it on a controller's listener.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace

from mockraft.kafka_api.api import Parked
from mockraft.server.apis.api import AnyApi, Api
from mockraft.server.controller.settings.offers import Offer
from mockraft.wire.message import Message, field_names
from mockraft.wire.overlay import Overlay
from mockraft.wire.recast import recast

SCHEMA_DEFAULTS = "schema defaults"
"""Server name in the journal of an exchange without a handler."""

_LISTENER = "controller"


def apis_over(apis: Mapping[int, AnyApi], overlay: Overlay) -> dict[int, AnyApi]:
    """Return the table by API key with the overlay's requests and responses in it."""
    table = {api_key: _in_overlay_classes(api, overlay) for api_key, api in apis.items()}
    for name, found in overlay.overlaid.items():
        api_key = found.schema.api_key
        if found.schema.kind == "request" and api_key not in table and _LISTENER in found.listeners:
            table[api_key] = _answered_with_defaults(overlay, name, api_key)
    return dict(sorted(table.items()))


def _in_overlay_classes(api: AnyApi, overlay: Overlay) -> AnyApi:
    request, response = overlay.request(api.api_key), overlay.response(api.api_key)
    if request is api.request and response is api.response:
        return api
    changed = replace(api, request=request)
    if request is not api.request:
        changed = replace(changed, min_version=request.min_version, max_version=_newest(request))
    if response is api.response:
        return changed

    def converted(result: Message | Parked[Message]) -> Message | Parked[Message]:
        if isinstance(result, Parked):
            return result.then(lambda later, _now_ms: recast(later, response))
        return recast(result, response)

    def converting(function: Callable[..., Message | Parked[Message]]) -> Callable[..., Message | Parked[Message]]:
        return lambda *arguments: converted(function(*arguments))

    return replace(changed, response=response, handle=converting(api.handle), error_form=converting(api.error))


def _answered_with_defaults(overlay: Overlay, name: str, api_key: int) -> AnyApi:
    request, response = overlay.by_name(name), overlay.response(api_key)
    return Api(
        request=request,
        response=response,
        handle=lambda _request, _ctx, _controller: response(),
        min_version=request.min_version,
        max_version=_newest(request),
        error_form=None if "error_code" in field_names(response) else lambda _request, _code, _message: response(),
        active_only=False,
        served_by=SCHEMA_DEFAULTS,
    )


def _newest(request: type[Message]) -> int:
    """Return the newest offered version: Kafka offers no unstable one either."""
    return request.max_version - (1 if request.latest_version_unstable else 0)


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
