"""The admin API of a controller or quorum in a test, if it has an `admin_port`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockraft.server.double import Double

if TYPE_CHECKING:
    from mockraft.server.admin.serving import AdminServer


class AdminApi:
    """The admin API of a double on a port of the loopback, 0 for any free one; None for no API."""

    def __init__(self, double: Double, port: int | None) -> None:
        self._double = double
        self._port = port
        self._server: AdminServer | None = None

    @property
    def url(self) -> str:
        """URL of the admin API, without a slash at the end. RuntimeError while it does not run."""
        if self._server is None:
            raise RuntimeError("there is no admin API: set admin_port=0, and use it inside the `with` block")
        return self._server.url

    async def start(self) -> None:
        """Listen if there is a port. OSError when the port is in use, RuntimeError without the packages it needs."""
        if self._port is None:
            return
        try:
            from mockraft.commands.traffic.recorder import LocalRecorder
            from mockraft.server.admin.serving import AdminServer
            from mockraft.server.admin.settings import AdminSettings
        except ImportError as error:
            raise RuntimeError(f"the admin API needs pip install 'mockraft[admin]' (or '.[admin]'): {error}") from None
        self._server = await AdminServer.start(self._double, AdminSettings(port=self._port), LocalRecorder())

    async def stop(self) -> None:
        """Close it, if it is open."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
