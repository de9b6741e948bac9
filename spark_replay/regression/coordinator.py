"""Permission to send a session, which Spark's tasks ask of the driver.

A request must not be sent twice. Spark may run a task again (a retry, speculation, a lost worker), so the driver, which
exists once, grants each session of a run once and refuses every later claim.
"""

from __future__ import annotations

import json
import secrets
import socket
import socketserver
import threading
from typing import Any, NamedTuple

TIMEOUT_S = 30


class AlreadySentError(RuntimeError):
    """Raised if a session is claimed a second time."""


class CoordinatorClient(NamedTuple):
    """The worker's side; plain values, so that it can be pickled with a task."""

    host: str
    port: int
    token: str

    def claim(self, session: str, attempt: int) -> None:
        """Claim a session before sending it. Raises AlreadySentError if it was granted before."""
        message = {"token": self.token, "claim": session, "attempt": attempt}
        with socket.create_connection((self.host, self.port), TIMEOUT_S) as connection:
            connection.sendall(json.dumps(message).encode() + b"\n")
            answer = connection.makefile().readline().strip()
        if answer != "granted":
            raise AlreadySentError(
                f"session {session} was already sent and is not sent again (task attempt {attempt}): "
                "its controller would receive every request twice"
            )


class ReplayCoordinator:
    """The driver's side, for one run; a context manager.

    `host` is an address of the driver that workers can reach (`spark.driver.host`).
    """

    def __init__(self, host: str) -> None:
        self.granted: dict[str, int] = {}
        self._lock = threading.Lock()
        token = secrets.token_hex(16)
        driver = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = TIMEOUT_S

            def handle(self) -> None:
                message = json.loads(self.rfile.readline(1 << 16) or b"{}")
                if secrets.compare_digest(str(message.get("token", "")), token):
                    self.wfile.write(driver._answer(message).encode() + b"\n")

        self._server = socketserver.ThreadingTCPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self.client = CoordinatorClient(host, self._server.server_address[1], token)
        # It notices every 0.5 s by default that it is shut down.
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="mockraft-coordinator", daemon=True
        )

    def __enter__(self) -> ReplayCoordinator:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, message: dict[str, Any]) -> str:
        with self._lock:
            if message["claim"] in self.granted:
                return "refused"
            self.granted[message["claim"]] = message["attempt"]
            return "granted"
