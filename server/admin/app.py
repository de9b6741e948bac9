"""The admin API as an ASGI application over a running controller or quorum."""

from __future__ import annotations

import asyncio
import functools
from importlib import metadata
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from mockraft.server.admin import faults, recordings, requests, state, stubs, system, verification
from mockraft.server.admin.guard import Guard
from mockraft.server.admin.json_bodies import compact
from mockraft.server.admin.metrics import Metrics
from mockraft.server.admin.openapi import openapi_document, operation_id
from mockraft.server.admin.problems import answer_problems
from mockraft.server.admin.recorder import Recorder
from mockraft.server.admin.settings import AdminSettings
from mockraft.server.double import Double
from starlette.staticfiles import StaticFiles

PAGE = Path(__file__).resolve().parent / "page"  # StaticFiles refuses symlinks, which an editable install has
ROUTERS = tuple(each.router for each in (system, stubs, faults, verification, requests, state, recordings))


def create_app(
    double: Double,
    settings: AdminSettings | None = None,
    stopping: asyncio.Event | None = None,
    recorder: Recorder | None = None,
) -> FastAPI:
    """Return the application; serve it in the double's event loop. Streams end once `stopping` is set.

    Without a `recorder`, `/v1/recordings` answers 409.
    """
    settings = settings or AdminSettings()
    app = FastAPI(
        version=metadata.version("mockraft"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=operation_id,
    )
    document = functools.cache(lambda: openapi_document(app, needs_token=settings.token is not None))
    text = functools.cache(lambda: compact(document()).encode())  # one for all, however many read it slowly
    app.openapi = document  # type: ignore[method-assign]
    app.state.double = double
    app.state.metrics = Metrics(double)
    app.state.recorder = recorder
    app.state.stopping = stopping or asyncio.Event()
    app.state.streams = set()
    app.state.saving = asyncio.Lock()
    answer_problems(app)
    for router in ROUTERS:
        app.include_router(router)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        # The first takes half a second.
        return Response(await asyncio.to_thread(text), media_type="application/json")

    if PAGE.is_dir():

        @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
        async def page() -> FileResponse:
            return FileResponse(PAGE / "index.html")

        app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(Guard, settings=settings)
    return app
