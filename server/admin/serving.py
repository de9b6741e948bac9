"""The admin API on a socket, in the event loop of its controller."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from mockraft.kafka_api.listening import bind
from mockraft.server.admin.app import create_app
from mockraft.server.admin.connections import protocol_of
from mockraft.server.admin.recorder import Recorder
from mockraft.server.admin.settings import AdminSettings
from mockraft.server.double import Double

GRACE_S = 1
"""Time for answers in progress once the API stops."""


class AdminServer:
    """A listening admin API; made by `start`, ended by `stop`."""

    def __init__(
        self,
        server: uvicorn.Server,
        stopping: asyncio.Event,
        settings: AdminSettings,
        port: int,
        recorder: Recorder | None = None,
    ) -> None:
        self._server = server
        self._stopping = stopping
        self.settings = settings
        self.port = port
        self._recorder = recorder

    @property
    def url(self) -> str:
        """Its URL without a trailing slash; the loopback address for a wildcard."""
        host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(self.settings.host, self.settings.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @classmethod
    async def start(cls, double: Double, settings: AdminSettings, recorder: Recorder | None = None) -> AdminServer:
        """Listen in the running event loop; `recorder` is closed with it. Raise OSError if the address is taken."""
        stopping = asyncio.Event()
        bound = bind(settings.host, settings.port)
        try:
            config = uvicorn.Config(
                create_app(double, settings, stopping, recorder),
                http=protocol_of(settings),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=settings.connections_max,
                timeout_graceful_shutdown=2 * GRACE_S,
            )
            config.load()
            server = uvicorn.Server(config)
            # Not `serve`: that one takes the process's signals, which are the controller's.
            server.lifespan = config.lifespan_class(config)
            await server.startup([_listening(bound)])
        except BaseException:
            bound.close()
            raise
        return cls(server, stopping, settings, bound.getsockname()[1], recorder)

    async def stop(self) -> None:
        """Close the listener; answers in progress get some time, streams end."""
        self._stopping.set()
        ending = asyncio.ensure_future(self._server.shutdown())
        await asyncio.wait([ending], timeout=GRACE_S)
        if not ending.done():
            # Who reads nothing is not waited for.
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
        await ending
        if self._recorder is not None:
            await self._recorder.close()


def _listening(bound: socket.socket) -> socket.socket:
    bound.setblocking(False)
    return bound
