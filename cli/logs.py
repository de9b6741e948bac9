"""The controller's logs: lines for people or JSON for machines, always on stderr.

A pipe that nobody reads is full after 64 KiB, and a write to it blocks. So a thread writes the lines, and the event
loop only hands them over: requests are answered while the log stands still, and lines that do not fit are dropped and
counted.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import select
import sys
import time
import traceback
from queue import SimpleQueue
from threading import Thread

from mockraft.wire.printable import printable, printable_line

PENDING_BYTES_MAX = 1 << 20
"""Size of the lines that wait to be written; each counts with `LINE_OVERHEAD_BYTES`."""

LINE_OVERHEAD_BYTES = 64
LINES_AT_ONCE = 1_000
PAUSE_S = 0.01
"""Time in which the thread lets lines collect after a write: each time it runs, the event loop waits for it."""
LINE_MAX = 2_000
"""Characters of a line: whatever it is about, the log grows by no more."""
TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
CLOSE_TIMEOUT_S = 0.5
"""Time for the last lines when the process ends: a log that nobody reads does not keep it."""


class LineFormatter(logging.Formatter):
    """Lines for people: those after the first of an entry, as of a traceback, are indented, so that none is forged."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return "\n    ".join(printable_line(line, LINE_MAX) for line in super().format(record).split("\n"))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, what was passed as `extra`, and the traceback if any."""

    _BUILT_IN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON text."""
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": "\n".join(line[:LINE_MAX] for line in record.getMessage().split("\n")),
        }
        line |= {key: value for key, value in vars(record).items() if key not in self._BUILT_IN}
        if record.exc_info:
            line["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, default=str)


class PipeHandler(logging.Handler):
    """A handler whose thread writes to a file descriptor, so that nobody who logs waits for its reader."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._dropped = 0
        # Two counts, each written by one side: logging.shutdown holds the lock while the last lines are written.
        self._put_bytes = self._written_bytes = 0
        # Neither sys.stderr nor its lock: the interpreter flushes it at the end, and would wait for this thread.
        self._thread = Thread(target=self._write_lines, name="mockraft-log", daemon=True)
        self._thread.start()

    def handle(self, record: logging.LogRecord) -> bool:
        """Format a record here, where its arguments are still the same, and hand over the line; `put` has the lock."""
        try:
            self.put(self.format(record))
        except Exception:
            self.handleError(record)
        return True

    def put(self, text: str) -> None:
        """Hand over a text, or count it if too much is waiting; before the next one is the number dropped."""
        self.acquire()
        try:
            line = printable(text).encode() + b"\n"
            if self._put_bytes - self._written_bytes + len(line) > PENDING_BYTES_MAX:
                self._dropped += 1
                return
            self._report_dropped()
            self._put(line)
        finally:
            self.release()

    def close(self) -> None:
        """Write what is waiting, for a limited time, and end the thread."""
        self.acquire()
        try:
            self._report_dropped()
            self._lines.put(None)
        finally:
            self.release()
        self._thread.join(CLOSE_TIMEOUT_S)
        super().close()

    def _report_dropped(self) -> None:
        if self._dropped:
            text = f"{self._dropped} lines of the log were dropped here, because nobody read it"
            self._dropped = 0
            record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None)
            self._put(self.format(record).encode() + b"\n")

    def _put(self, line: bytes) -> None:
        self._put_bytes += len(line) + LINE_OVERHEAD_BYTES
        self._lines.put(line)

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            lines = [line]
            # Many in one write: each gives the interpreter to the event loop, which keeps it for some milliseconds.
            while len(lines) < LINES_AT_ONCE and not self._lines.empty():
                if (line := self._lines.get()) is None:
                    self._lines.put(None)
                    break
                lines.append(line)
            data = b"".join(lines)
            with contextlib.suppress(OSError):  # nobody will read any more
                self._write(data)
            self._written_bytes += len(data) + LINE_OVERHEAD_BYTES * len(lines)
            if self._lines.empty() and self.lock is not None and self.lock.acquire(blocking=False):
                self._report_dropped()
                self.lock.release()
            time.sleep(PAUSE_S)

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # whoever shares the pipe made it non-blocking
                poll = select.poll()
                poll.register(self._descriptor, select.POLLOUT)
                poll.poll()


def configure(level: str, as_json: bool) -> None:
    """Send every log of the process to stderr, from this level on, and nowhere else."""
    handler: logging.Handler
    try:
        handler = PipeHandler(sys.stderr.fileno())
    except io.UnsupportedOperation:
        handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else LineFormatter(TEXT_FORMAT))
    # What no line has is not looked up for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def print_error(text: str) -> None:
    """Print a line on stderr, after those of the log."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, PipeHandler):
            handler.put(text)
            return
    print(text, file=sys.stderr)
