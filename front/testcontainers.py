"""mockraft in a container, for tests that use testcontainers: `MockraftContainer`.

    with MockraftContainer() as mockraft:
        properties["controller.quorum.bootstrap.servers"] = mockraft.bootstrap
        httpx.post(f"{mockraft.admin_url}/v1/stubs", headers=mockraft.admin_headers, json={...})

A broker connects to the address that the controller advertises. That address is set once the container runs and its
port on the host is known; on a network of containers it is the container's alias there.
Needs `mockraft[containers]`.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping
from typing import Any, Self

from mockraft.cli.serve.options import to_arguments
from mockraft.testing.options import TEST_HEARTBEAT_INTERVAL_MS
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import CompositeWaitStrategy, LogMessageWaitStrategy, PortWaitStrategy

IMAGE = "mockraft"
CONTROLLER_PORT = 9093
ADMIN_PORT = 8080

_ARGUMENTS = "/tmp/mockraft-arguments"
_ADMIN_TOKEN = "/tmp/mockraft-admin-token"
_COPIED = "/tmp/mockraft-copied"
_WAIT_AND_SERVE = f'until [ -f {_COPIED} ]; do sleep 0.02; done; eval "exec mockraft serve $(cat {_ARGUMENTS})"'
_READY = re.compile(r"mockraft ready bootstrap=(\S+) cluster_id=(\S+) node_id=(\S+) admin=(\S+)")


class MockraftContainer(DockerContainer):
    """A controller in a container; ports of the host are free ones.

    `serve_options` are options of `mockraft serve` by name (`{"session_timeout_ms": 2000}`), `arguments` further ones
    as on its command line. With `network` the controller advertises `alias`, for brokers in containers of that network;
    without, the host's address, for brokers and tools on the host. `start` raises RuntimeError, with the container's
    log, when it is not ready in `startup_timeout_s` or ends before.
    """

    def __init__(
        self,
        image: str = IMAGE,
        *,
        arguments: tuple[str, ...] = (),
        serve_options: Mapping[str, object] | None = None,
        network: Network | None = None,
        alias: str = "mockraft",
        startup_timeout_s: float = 30,
        **options: Any,
    ) -> None:
        super().__init__(image, **options)
        self.cluster_id = ""
        """The cluster's id, once it runs; brokers are formatted with it."""
        self.admin_token = secrets.token_urlsafe()
        """Bearer token of the HTTP API: Docker opens its port to other machines, too."""
        self._arguments = (*to_arguments(serve_options or {}), *arguments)
        self._alias = alias if network is not None else None
        self._startup_timeout_s = startup_timeout_s
        self.with_exposed_ports(CONTROLLER_PORT, ADMIN_PORT)
        self.with_kwargs(entrypoint=["sh", "-c", _WAIT_AND_SERVE])
        if network is not None:
            self.with_network(network).with_network_aliases(alias)

    def start(self) -> Self:
        """Start it and wait until it accepts connections."""
        super().start()
        try:
            self.copy_into_container(self.admin_token.encode(), _ADMIN_TOKEN)
            self.copy_into_container(self._serve_arguments().encode(), _ARGUMENTS)
            # Docker creates a file before it writes its content: the container waits for a last one, which is empty.
            self.copy_into_container(b"", _COPIED)
            # Docker may publish the ports on the host later than the controller listens.
            published = [PortWaitStrategy(port) for port in (CONTROLLER_PORT, ADMIN_PORT)]
            ready = CompositeWaitStrategy(LogMessageWaitStrategy(_READY), *published)
            ready.with_startup_timeout(int(self._startup_timeout_s)).wait_until_ready(self)
        except (RuntimeError, TimeoutError) as error:
            log = b"".join(self.get_logs()).decode(errors="replace").strip()
            self.stop()
            raise RuntimeError(f"mockraft did not become ready in its container; its log:\n{log}") from error
        except BaseException:
            self.stop()
            raise
        found = _READY.search(self.get_logs()[0].decode())
        assert found is not None
        self.cluster_id = found[2]
        return self

    @property
    def bootstrap(self) -> str:
        """Value of `controller.quorum.bootstrap.servers` for brokers: host:port."""
        host, port = self._advertised()
        return f"{host}:{port}"

    @property
    def admin_url(self) -> str:
        """URL of the HTTP API and the live page, from the host."""
        return f"http://{self.get_container_host_ip()}:{self.get_exposed_port(ADMIN_PORT)}"

    @property
    def admin_headers(self) -> dict[str, str]:
        """Headers of a request to the HTTP API."""
        return {"Authorization": f"Bearer {self.admin_token}"}

    def _advertised(self) -> tuple[str, int]:
        if self._alias is not None:
            return self._alias, CONTROLLER_PORT
        return self.get_container_host_ip(), int(self.get_exposed_port(CONTROLLER_PORT))

    def _serve_arguments(self) -> str:
        host, port = self._advertised()
        own = {
            "host": "0.0.0.0",
            "port": CONTROLLER_PORT,
            "advertised_host": host,
            "advertised_port": port,
            "admin_host": "0.0.0.0",
            "admin_port": ADMIN_PORT,
            "admin_token_file": _ADMIN_TOKEN,
            "broker_heartbeat_interval_ms": TEST_HEARTBEAT_INTERVAL_MS,
        }
        return shlex.join((*to_arguments(own), *self._arguments))
