"""The processes of a fleet, seen by the one that started them: started, counted and ended together."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

from mockraft.brokers.fleet.figures import Figures, figures_of, merged
from mockraft.brokers.fleet.share import Share
from mockraft.brokers.fleet.worker import LINE_BYTES_MAX

LAST_WORDS = 12


class _Worker:
    """One process and what it said last."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.figures = Figures()
        self.ready = asyncio.Event()
        self.is_over = False
        self.stderr: deque[str] = deque(maxlen=LAST_WORDS)

    def say(self, message: Any) -> None:
        """A line to its stdin; one that is gone does not mind."""
        assert self.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def listen(self) -> None:
        """Take in what it says until it says no more."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            told = json.loads(line)
            if "ready" in told:
                self.ready.set()
            else:
                self.is_over = "over" in told
                self.figures = figures_of(told["over" if self.is_over else "figures"])

    async def listen_to_errors(self) -> None:
        """Keep the last lines of its stderr."""
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.stderr.append(line.decode(errors="replace").rstrip())


class Crew:
    """The worker processes of these shares: :meth:`start`, then :meth:`leave` or :meth:`stop`, then :meth:`join`.

    `lost` says, for each process that ended before it was told to, how.
    """

    def __init__(self, shares: Sequence[Share]) -> None:
        self.shares = list(shares)
        self.lost: list[str] = []
        self._workers: list[_Worker] = []
        self._watching: list[asyncio.Task[None]] = []

    @property
    def figures(self) -> Figures:
        """Of all processes, as they told them last."""
        return merged(worker.figures for worker in self._workers)

    @property
    def is_over(self) -> bool:
        """Whether every process has ended."""
        return all(task.done() for task in self._watching)

    async def start(self) -> None:
        """Start the processes; the plan begins in all of them together, when the last one is ready."""
        for share in self.shares:
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
            worker.say(share.to_tree())
        for worker in self._workers:
            await worker.ready.wait()
        self._say("go")

    def leave(self) -> None:
        """Have all brokers leave by controlled shutdown; the processes end after it."""
        self._say("leave")

    def stop(self) -> None:
        """Have all brokers stop at once; the processes end after it."""
        self._say("stop")

    async def join(self) -> None:
        """Return when every process has ended."""
        await asyncio.gather(*self._watching)

    async def kill(self) -> None:
        """End what still runs, whatever it does."""
        for worker in self._workers:
            if worker.process.returncode is None:
                worker.process.kill()
        await self.join()

    def _say(self, message: Any) -> None:
        for worker in self._workers:
            worker.say(message)

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
            worker.figures.died |= dict.fromkeys(self.shares[number - 1].racks, "its process ended")
        worker.ready.set()
