"""mockraft in a container, for tests that use testcontainers: `MockraftContainer`.

    with MockraftContainer() as mockraft:
        properties["controller.quorum.bootstrap.servers"] = mockraft.bootstrap
        httpx.post(f"{mockraft.admin_url}/v1/stubs", headers=mockraft.admin_headers, json={...})

A broker connects to the address that the controller names, not to the one it was given. So that address is told when
the container runs and its port on the host is known; on a network of containers it is the container's alias there.
Needs `mockraft[containers]`.
"""

from __future__ import annotations

import re
import secrets
import shlex
from typing import Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

IMAGE = "mockraft"
CONTROLLER_PORT = 9093
ADMIN_PORT = 8080

_ARGUMENTS = "/tmp/mockraft-arguments"
_ADMIN_TOKEN = "/tmp/mockraft-admin-token"
_WAIT_AND_SERVE = f'until [ -f {_ARGUMENTS} ]; do sleep 0.02; done; eval "exec mockraft serve $(cat {_ARGUMENTS})"'
_READY = re.compile(r"mockraft ready bootstrap=(\S+) cluster_id=(\S+) node_id=(\S+) admin=(\S+)")


class MockraftContainer(DockerContainer):
    """A controller in a container; ports of the host are free ones.

    `arguments` are further ones of `mockraft serve`. With `network` the controller names itself by `alias` there, for
    brokers in containers of that network; without, by the host's address, for brokers and tools on the host.
    `start` raises RuntimeError, with the container's log, when it is not ready in `startup_timeout_s` or ends before.
    """

    def __init__(
        self,
        image: str = IMAGE,
        *,
        arguments: tuple[str, ...] = (),
        network: Network | None = None,
        alias: str = "mockraft",
        startup_timeout_s: float = 30,
        **options: Any,
    ) -> None:
        super().__init__(image, **options)
        self.cluster_id = ""
        """The cluster's id, once it runs; brokers are formatted with it."""
        self.admin_token = secrets.token_urlsafe()
        """What users of the HTTP API show: Docker opens its port to other machines, too."""
        self._arguments = arguments
        self._alias = alias if network is not None else None
        self._startup_timeout_s = startup_timeout_s
        self.with_exposed_ports(CONTROLLER_PORT, ADMIN_PORT)
        self.with_kwargs(entrypoint=["sh", "-c", _WAIT_AND_SERVE])
        if network is not None:
            self.with_network(network).with_network_aliases(alias)

    def start(self) -> Self:
        """Start it and wait until it takes connections."""
        super().start()
        try:
            self.copy_into_container(self.admin_token.encode(), _ADMIN_TOKEN)
            self.copy_into_container(self._serve_arguments().encode(), _ARGUMENTS)
            ready = LogMessageWaitStrategy(_READY).with_startup_timeout(int(self._startup_timeout_s))
            ready.wait_until_ready(self)
        except (RuntimeError, TimeoutError) as error:
            said = b"".join(self.get_logs()).decode(errors="replace").strip()
            self.stop()
            raise RuntimeError(f"mockraft did not become ready in its container; it said:\n{said}") from error
        except BaseException:
            self.stop()
            raise
        found = _READY.search(self.get_logs()[0].decode())
        assert found is not None
        self.cluster_id = found[2]
        return self

    @property
    def bootstrap(self) -> str:
        """What brokers need as `controller.quorum.bootstrap.servers`: host:port, of the network if it is in one."""
        host, port = self._advertised()
        return f"{host}:{port}"

    @property
    def admin_url(self) -> str:
        """Where the HTTP API and the live page are, from the host."""
        return f"http://{self.get_container_host_ip()}:{self.get_exposed_port(ADMIN_PORT)}"

    @property
    def admin_headers(self) -> dict[str, str]:
        """The headers of a request to the HTTP API."""
        return {"Authorization": f"Bearer {self.admin_token}"}

    def _advertised(self) -> tuple[str, int]:
        if self._alias is not None:
            return self._alias, CONTROLLER_PORT
        return self.get_container_host_ip(), int(self.get_exposed_port(CONTROLLER_PORT))

    def _serve_arguments(self) -> str:
        host, port = self._advertised()
        own = ("--host", "0.0.0.0", "--port", str(CONTROLLER_PORT))
        told = ("--advertised-host", host, "--advertised-port", str(port))
        admin = ("--admin-host", "0.0.0.0", "--admin-port", str(ADMIN_PORT), "--admin-token-file", _ADMIN_TOKEN)
        return shlex.join((*own, *told, *admin, *self._arguments))
