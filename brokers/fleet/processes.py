"""The worker processes of a fleet from the parent's side: started, monitored and stopped together."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

from mockraft.brokers.fleet.figures import Figures, figures_of, merged
from mockraft.brokers.fleet.plan import Shard
from mockraft.brokers.fleet.worker import LINE_BYTES_MAX

LAST_WORDS = 12


class _Worker:
    """One process and its last reported figures."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.figures = Figures()
        self.ready = asyncio.Event()
        self.is_over = False
        self.stderr: deque[str] = deque(maxlen=LAST_WORDS)

    def send(self, message: Any) -> None:
        """Write a line to its stdin; ignore a process that is gone."""
        assert self.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def listen(self) -> None:
        """Process its output until it ends."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "ready" in message:
                self.ready.set()
            else:
                self.is_over = "over" in message
                self.figures = figures_of(message["over" if self.is_over else "figures"])

    async def listen_to_errors(self) -> None:
        """Keep the last lines of its stderr."""
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.stderr.append(line.decode(errors="replace").rstrip())


class WorkerProcesses:
    """The worker processes of these shards: :meth:`start`, then :meth:`leave` or :meth:`stop`, then :meth:`join`.

    `lost` has the exit reason of each process that ended before it was told to stop.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = list(shards)
        self.lost: list[str] = []
        self._workers: list[_Worker] = []
        self._watching: list[asyncio.Task[None]] = []

    @property
    def figures(self) -> Figures:
        """The sum of all processes' last reported figures."""
        return merged(worker.figures for worker in self._workers)

    @property
    def is_over(self) -> bool:
        """True if every process has ended."""
        return all(task.done() for task in self._watching)

    async def start(self) -> None:
        """Start the processes; the plan starts in all of them together, when the last one is ready."""
        for shard in self.shards:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mockraft.brokers.fleet.worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX,
                start_new_session=True,
            )
            worker = _Worker(process)
            self._workers.append(worker)
            self._watching.append(asyncio.ensure_future(self._watch(worker)))
            worker.send(shard.to_tree())
        for worker in self._workers:
            await worker.ready.wait()
        self._send("go")

    def leave(self) -> None:
        """Shut all brokers down in a controlled way; the processes end afterwards."""
        self._send("leave")

    def stop(self) -> None:
        """Stop all brokers at once; the processes end afterwards."""
        self._send("stop")

    async def join(self) -> None:
        """Wait until every process has ended."""
        await asyncio.gather(*self._watching)

    async def kill(self) -> None:
        """Kill the processes that are still running."""
        for worker in self._workers:
            if worker.process.returncode is None:
                worker.process.kill()
        await self.join()

    def _send(self, message: Any) -> None:
        for worker in self._workers:
            worker.send(message)

    async def _watch(self, worker: _Worker) -> None:
        errors = asyncio.ensure_future(worker.listen_to_errors())
        await worker.listen()
        code = await worker.process.wait()
        await errors
        if not worker.is_over:
            number = self._workers.index(worker) + 1
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            last = "".join(f"\n  | {line}" for line in worker.stderr)
            self.lost.append(f"process {number} of {len(self._workers)} ended with {how}{last}")
            worker.figures.died |= dict.fromkeys(self.shards[number - 1].racks, "its process ended")
        worker.ready.set()
