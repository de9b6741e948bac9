"""A process of a fleet: `python -m mockraft.brokers.fleet.worker`, started by a `Crew`; JSON lines in and out.

In: its share, then `go`, and `leave` or `stop`. Out: `ready`, figures a few times a second, and `over` with the last
ones. When its input ends, whoever started it is gone: it stops at once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import sys
from pathlib import Path
from typing import Any

from mockraft.brokers.fleet.memory import allow_many_files
from mockraft.brokers.fleet.runner import FleetRunner
from mockraft.brokers.fleet.share import share_of

REPORT_S = 0.25
GC_THRESHOLDS = (20_000, 5, 1_000)
"""A full collection among millions of objects that all stay takes half a second, in which nobody heartbeats."""
LINE_BYTES_MAX = 1 << 28


async def work() -> None:
    """Do what the lines on stdin say."""
    lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    share = share_of(json.loads(await lines.readline()))
    runner = FleetRunner(share, _security(share.command_config))
    _tell({"ready": True})
    if json.loads(await lines.readline() or '"stop"') != "go":
        return
    told = asyncio.ensure_future(_told(runner, lines))
    running = asyncio.ensure_future(runner.run())
    while not told.done():
        _tell({"figures": runner.figures().to_tree()})
        await asyncio.wait((told, running) if not running.done() else (told,), timeout=REPORT_S)
        if running.done():
            running.result()
    running.cancel()
    told.result()
    _tell({"over": runner.figures().to_tree()})


async def _told(runner: FleetRunner, lines: asyncio.StreamReader) -> None:
    """Wait for the word to end and end; a second word cuts a long farewell short."""
    word = json.loads(await lines.readline() or '"stop"')
    if word == "leave":
        leaving = asyncio.ensure_future(runner.leave(runner.share.session_timeout_ms))
        again = asyncio.ensure_future(lines.readline())
        await asyncio.wait((leaving, again), return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        if leaving.done():
            leaving.result()
            return
        leaving.cancel()
    await runner.stop()


def _tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _security(path: str | None) -> Any:
    if path is None:
        return None
    from mockraft.wire.client_security import read_properties

    return read_properties(Path(path))


def event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop: uvloop's where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def main() -> None:
    """Run one worker."""
    # A Ctrl-C in the terminal is for the process that started this one, which then says what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger().addHandler(logging.NullHandler())
    allow_many_files()
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=event_loop) as runner:
        runner.run(work())


if __name__ == "__main__":
    main()
