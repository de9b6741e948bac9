"""Toxiproxy in front of the brokers, as sarama's tests expect it, and the `docker` with which they restart a broker."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from mockraft.kafka.child_process import ChildProcess, free_port

from .clusters import ClientCluster
from .sources import GoModule

PORTS = (29091, 29092, 29093, 29094, 29095)
"""Ports of the proxies, which sarama's tests have by heart."""

_TOXIPROXY = GoModule("github.com/Shopify/toxiproxy/v2", "v2.12.0", "h1:d1x++lYZg/zijXPPcv7PH0MvHMzEI5aX/YuUi/Sw+yg=")
_DOCKER = """#!{python}
# Called as `docker compose stop kafka-2`.
import sys, urllib.request
urllib.request.urlopen("{address}/" + "/".join(sys.argv[2:]), data=b"", timeout=90)
"""


@contextmanager
def proxied(cluster: ClientCluster) -> Iterator[Mapping[str, str]]:
    """Run a proxy for each broker; give the environment in which sarama's tests find them."""
    with TemporaryDirectory() as work:
        folder, port = Path(work), free_port()
        proxy = ChildProcess("toxiproxy", folder / "toxiproxy.log")
        proxy.launch([str(_TOXIPROXY.program("cmd/server")), "-host", "127.0.0.1", "-port", str(port)])
        try:
            proxy.wait_for_log("Starting (Toxiproxy )?HTTP server")
            for broker, listen in zip(cluster.brokers.values(), PORTS, strict=True):
                wanted = {
                    "name": f"kafka{broker.node_id}",
                    "listen": f"127.0.0.1:{listen}",
                    "upstream": broker.bootstrap,
                }
                urllib.request.urlopen(f"http://127.0.0.1:{port}/proxies", json.dumps(wanted).encode(), timeout=10)
            with _restarts(cluster, folder / "docker"):
                yield {
                    "TOXIPROXY_ADDR": f"http://127.0.0.1:{port}",
                    "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
                }
        finally:
            proxy.kill()


@contextmanager
def _restarts(cluster: ClientCluster, command: Path) -> Iterator[None]:
    """Write a `docker` command that stops and starts brokers of this cluster."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            verb, _, name = self.path.strip("/").partition("/")
            broker = cluster.brokers[int(name.removeprefix("kafka-"))]
            if verb == "stop" and broker.running:
                broker.stop()
            elif verb == "start" and not broker.running:
                broker.start()
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        command.write_text(_DOCKER.format(python=sys.executable, address=address))
        command.chmod(0o755)
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
