"""Times of importing mockraft's messages in new processes, beside a prototype that has the same message and no more."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mockraft.wire.messages import broker_heartbeat_request

RUNTIME = Path(__file__).with_name("prototype_runtime.py")
ONE, ALL, YARDSTICK = "package + one message", "all messages", "the prototype of one message"
PROGRAMS = {
    ONE: "import mockraft.wire.messages.broker_heartbeat_request",
    YARDSTICK: "import prototype.broker_heartbeat_request",
    ALL: (
        "from mockraft.wire import messages, records\n"
        "for name in messages.NAMES: messages.by_name(name)\n"
        "for name in records.NAMES: records.by_name(name)"
    ),
}
CHECK = """
from prototype.broker_heartbeat_request import BrokerHeartbeatRequest
data = BrokerHeartbeatRequest(broker_id=7, offline_log_dirs=[bytes(16)], cordoned_log_dirs=[bytes(16)] * 2).write(2)
assert BrokerHeartbeatRequest.read(data, 2).write(2) == data
"""


def write_prototype(folder: Path) -> None:
    """Write the package `prototype`: the generated module of one message over prototype_runtime.py."""
    package = folder / "prototype"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(RUNTIME, package / "runtime.py")
    source = inspect.getsource(broker_heartbeat_request)
    source = re.sub(r"^from mockraft\.wire\.\w+ import", "from prototype.runtime import", source, flags=re.MULTILINE)
    (package / "broker_heartbeat_request.py").write_text(source)


def import_times_ms(processes: int) -> dict[str, list[float]]:
    """Return the milliseconds of each import in new processes that take turns, without the interpreter's start."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        write_prototype(Path(folder))
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": f"{folder}/cache", "MOCKRAFT_CODEC": "pure", "PYTHONPATH": folder}

        def run(program: str) -> str:
            command = [sys.executable, "-c", program]
            return subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment, text=True).stdout

        run(CHECK)
        for number in range(processes + 1):
            for name, code in PROGRAMS.items():
                timed = f"import time\nt = time.perf_counter()\n{code}\nprint((time.perf_counter() - t) * 1000)"
                taken_ms = float(run(timed))
                if number:  # the first one compiles
                    times[name].append(taken_ms)
    return times
