"""Members of controllers and quorums in a test's own event loop: their block's end, their cluster, their admin API."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

from mockraft.kafka_api.extras import install_hint
from mockraft.server.config import ControllerConfig
from mockraft.server.double import Double
from mockraft.testing.double import AsyncDoubleApi

if TYPE_CHECKING:
    from mockraft.server.admin.serving import AdminServer


class DoubleInLoop(AsyncDoubleApi):
    """A double in the test's own event loop; `admin_port` is the admin API's on the loopback, 0 for any free one."""

    def __init__(self, config: ControllerConfig, double: Double, admin_port: int | None) -> None:
        self.double = double
        self._config = config
        self._admin_port = admin_port
        self._admin: AdminServer | None = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    @abstractmethod
    async def _stop(self) -> None:
        """Stop everything."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id; brokers are formatted with it."""
        return self._config.cluster_id

    @property
    def admin_url(self) -> str:
        """URL of the admin API and the live page, without a slash at the end. RuntimeError without `admin_port`."""
        if self._admin is None:
            raise RuntimeError("there is no admin API: set admin_port=0, and use it inside the `with` block")
        return self._admin.url

    async def _start_admin(self) -> None:
        """Listen if there is a port. OSError when the port is in use, RuntimeError without the packages it needs."""
        if self._admin_port is None:
            return
        try:
            from mockraft.cli.traffic.recorder import LocalRecorder
            from mockraft.server.admin.serving import AdminServer
            from mockraft.server.admin.settings import AdminSettings
        except ImportError as error:
            raise RuntimeError(f"the admin API needs {install_hint('admin')}: {error}") from None
        self._admin = await AdminServer.start(
            self.double,
            AdminSettings(port=self._admin_port),
            LocalRecorder(show_secrets=self.double.state.show_secrets),
        )

    async def _stop_admin(self) -> None:
        """Close the admin API, if it is open."""
        server, self._admin = self._admin, None
        if server is not None:
            await server.stop()
