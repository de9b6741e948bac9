"""A process of a fleet: `python -m mockraft.brokers.fleet.worker`, started by a `Crew`; JSON lines in and out.

Input: its share, then `go`, then `leave` or `stop`. Output: `ready`, figures a few times a second, and `over` with the
last ones. At the end of its input the parent process is gone: it stops at once.
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

from mockraft.brokers.fleet.limits import allow_many_files
from mockraft.brokers.fleet.plan import shard_of
from mockraft.brokers.fleet.runner import FleetRunner
from mockraft.kafka_api.shell import event_loop
from mockraft.kafka_configs.client_properties import read_properties

REPORT_S = 0.25
GC_THRESHOLDS = (20_000, 5, 1_000)
"""A full collection over millions of long-lived objects takes half a second, in which no heartbeat is sent."""
LINE_BYTES_MAX = 1 << 28


async def work() -> None:
    """Execute the commands from stdin."""
    lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    shard = shard_of(json.loads(await lines.readline()))
    security = None if shard.command_config is None else read_properties(Path(shard.command_config))
    runner = FleetRunner(shard, security)
    _send({"ready": True})
    if json.loads(await lines.readline() or '"stop"') != "go":
        return
    commands = asyncio.ensure_future(_commands(runner, lines))
    running = asyncio.ensure_future(runner.run())
    while not commands.done():
        _send({"figures": runner.figures().to_tree()})
        await asyncio.wait((commands, running) if not running.done() else (commands,), timeout=REPORT_S)
        if running.done():
            running.result()
    running.cancel()
    commands.result()
    _send({"over": runner.figures().to_tree()})


async def _commands(runner: FleetRunner, lines: asyncio.StreamReader) -> None:
    """Wait for the stop signal; a second one skips the graceful shutdown."""
    word = json.loads(await lines.readline() or '"stop"')
    if word == "leave":
        leaving = asyncio.ensure_future(runner.leave(runner.shard.session_timeout_ms))
        again = asyncio.ensure_future(lines.readline())
        await asyncio.wait((leaving, again), return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        if leaving.done():
            leaving.result()
            return
        leaving.cancel()
    await runner.stop()


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run one worker."""
    # A Ctrl-C in the terminal is handled by the parent process, which then sends a command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger().addHandler(logging.NullHandler())
    allow_many_files()
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=event_loop) as runner:
        runner.run(work())


if __name__ == "__main__":
    main()
