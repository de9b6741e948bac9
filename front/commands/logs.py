"""The controller's logs: lines for people or JSON for machines, always on stderr."""

import json
import logging
import sys
import time
import traceback


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, what was passed as `extra`, and the traceback if any."""

    _BUILT_IN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON text."""
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in self._BUILT_IN}
        if record.exc_info:
            line["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, default=str)


def configure(level: str, as_json: bool) -> None:
    """Send every log of the process to stderr, from this level on, and nowhere else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter() if as_json else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
