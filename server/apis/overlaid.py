"""The APIs of a controller that speaks an overlay's messages too.

An API that is handled keeps its handler: that reads an overlay's request by Kafka's names (what the overlay has not is
at its default), and what it answers is said in the overlay's response. A request that nobody handles is answered with
its response's defaults, if its schema offers it on a controller's listener.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mockraft.server.apis.api import Api, Parked
from mockraft.wire.message import Message
from mockraft.wire.overlay import Overlay
from mockraft.wire.recast import recast

SCHEMA_DEFAULTS = "schema defaults"
"""Who served an exchange that no handler knows."""

_LISTENER = "controller"


def apis_over(apis: Mapping[int, Api], overlay: Overlay) -> dict[int, Api]:
    """The table by API key with the overlay's requests and responses in it."""
    table = {api_key: _spoken_anew(api, overlay) for api_key, api in apis.items()}
    for name, found in overlay.overlaid.items():
        api_key = found.schema.api_key
        if found.schema.kind == "request" and api_key not in table and _LISTENER in found.listeners:
            table[api_key] = _answered_with_defaults(overlay, name, api_key)
    return dict(sorted(table.items()))


def _spoken_anew(api: Api, overlay: Overlay) -> Api:
    request, response = overlay.request(api.api_key), overlay.response(api.api_key)
    if request is api.request and response is api.response:
        return api
    changed = api._replace(request=request)
    if request is not api.request:
        changed = changed._replace(min_version=request.min_version, max_version=_newest(request))
    if response is api.response:
        return changed

    def say(told: Any) -> Any:
        if told.__class__ is Parked:
            return Parked(told.deadline_ms, lambda now_ms, expired: say(told.retry(now_ms, expired)))
        return None if told is None else recast(told, response)

    def saying(tell: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: say(tell(*arguments))

    return changed._replace(response=response, handle=saying(api.handle), error=saying(api.error))


def _answered_with_defaults(overlay: Overlay, name: str, api_key: int) -> Api:
    request, response = overlay.by_name(name), overlay.response(api_key)
    return Api(
        request=request,
        response=response,
        handle=lambda _request, _ctx, _controller: response(),
        min_version=request.min_version,
        max_version=_newest(request),
        error=lambda _request, _error_code, _message: response(),
        active_only=False,
        served_by=SCHEMA_DEFAULTS,
    )


def _newest(request: type[Message]) -> int:
    """The newest version that is offered: Kafka offers no unstable one either."""
    return request.max_version - (1 if request.latest_version_unstable else 0)
