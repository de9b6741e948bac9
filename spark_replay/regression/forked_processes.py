"""`mockraft serve` processes, one per session, forked from a process that has imported it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import BinaryIO

FORKING = "mockraft.cli.forking"


class ForkingProcess:
    """A process of `mockraft.cli.forking`, started at the first `fork`; ends with the `with` block or this process."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ForkingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            self._process.wait()

    def fork(self, arguments: list[str], log: BinaryIO) -> Fork:
        """Start `mockraft` with these arguments; its output goes to the log. Raises OSError."""
        if self._requests is None:
            self._requests, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-m", FORKING]
                self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=log, stderr=log)
        stdin, theirs = socket.socketpair()
        pid = b""
        with theirs, suppress(ConnectionError):  # the log has the reason
            socket.send_fds(self._requests, [json.dumps(arguments).encode()], [theirs.fileno(), log.fileno()])
            pid = self._requests.recv(32)
        return Fork(int(pid or 0), stdin)


class Fork:
    """A forked process, with the methods of `subprocess.Popen`; its id is 0 if it could not be forked.

    The process ends with its standard input, so with this process at the latest.
    """

    def __init__(self, pid: int, stdin: socket.socket) -> None:
        self.pid = pid
        self._stdin = stdin
        self._ended = select.poll()
        self._ended.register(stdin, select.POLLIN)

    def poll(self) -> int | None:
        """Return None while it runs."""
        return 0 if self._ended.poll(0) else None

    def terminate(self) -> None:
        """Ask it to end."""
        with suppress(OSError):  # it has ended
            self._stdin.shutdown(socket.SHUT_WR)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        if not self._ended.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired(FORKING, timeout or 0)
        self._stdin.close()
        return 0

    def kill(self) -> None:
        """End it at once."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
