"""A line from Spark's tasks to the driver: may I send this session, and how far am I.

A request that was sent twice is no replay. Spark may run a task again (a retry, speculation, a lost worker), so the
driver, which there is once, grants each session of a run once; what asks again is refused, whatever made it ask.
"""

from __future__ import annotations

import json
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

TIMEOUT_S = 30


class SentBeforeError(RuntimeError):
    """A session is asked for a second time."""


class Line(NamedTuple):
    """The worker's end; plain values, so that it travels with a task."""

    host: str
    port: int
    token: str

    def claim(self, session: str, attempt: int) -> None:
        """Ask to send a session. SentBeforeError when it was granted before."""
        if self._ask({"claim": session, "attempt": attempt}) != "granted":
            raise SentBeforeError(
                f"session {session} was sent already and is not sent again (task attempt {attempt}): "
                "its controller would get every request twice"
            )

    def tell(self, sent: int, different: int) -> None:
        """Tell how many exchanges are over since the last time, and how many of them are not as captured."""
        self._ask({"sent": sent, "different": different})

    def _ask(self, what: dict[str, Any]) -> str:
        with socket.create_connection((self.host, self.port), TIMEOUT_S) as line:
            line.sendall(json.dumps({"token": self.token, **what}).encode() + b"\n")
            return line.makefile().readline().strip()


class DriverLine:
    """The driver's end, for one run; in a `with` block.

    Args:
        host: an address of the driver that workers reach (`spark.driver.host`).
        on_progress: told all that is sent and different so far.
    """

    def __init__(self, host: str, on_progress: Callable[[int, int], None] = lambda sent, different: None) -> None:
        self.granted: dict[str, int] = {}
        self.sent = self.different = 0
        self._on_progress = on_progress
        self._lock = threading.Lock()
        token = secrets.token_hex(16)
        driver = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = TIMEOUT_S

            def handle(self) -> None:
                said = json.loads(self.rfile.readline(1 << 16) or b"{}")
                if secrets.compare_digest(str(said.get("token", "")), token):
                    self.wfile.write(driver._answer(said).encode() + b"\n")

        self._server = socketserver.ThreadingTCPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self.line = Line(host, self._server.server_address[1], token)
        self._thread = threading.Thread(target=self._server.serve_forever, name="mockraft-driver-line", daemon=True)

    def __enter__(self) -> DriverLine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, said: dict[str, Any]) -> str:
        with self._lock:
            if "claim" in said:
                if said["claim"] in self.granted:
                    return "refused"
                self.granted[said["claim"]] = said["attempt"]
                return "granted"
            self.sent += said["sent"]
            self.different += said["different"]
            self._on_progress(self.sent, self.different)
        return "told"
