"""Times of importing mockraft's messages in new processes, beside a prototype that has the same message and no more.

Both are imported from one folder of regular files, as wheels are installed. A clone's editable install is found later
on `sys.path` and has a link for each file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import mockraft

RUNTIME = Path(__file__).with_name("prototype_runtime.py")
MESSAGES = Path(mockraft.__path__[0], "wire", "messages")
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
    """Write the package `prototype`: the generated modules of all messages over prototype_runtime.py.

    That runtime serves one of them, which is the one that is imported; finding it takes longer among all of them.
    """
    package = folder / "prototype"
    package.mkdir()
    for path in MESSAGES.glob("*.py"):
        source = re.sub(
            r"^from mockraft\.wire\.\w+ import", "from prototype.runtime import", path.read_text(), flags=re.M
        )
        (package / path.name).write_text(source)
    (package / "__init__.py").touch()
    shutil.copy(RUNTIME, package / "runtime.py")


def install(folder: Path) -> None:
    """Copy what messages need of mockraft into the folder."""
    source, package = Path(mockraft.__path__[0]), folder / "mockraft"
    package.mkdir()
    shutil.copy(source / "__init__.py", package)
    shutil.copytree(source / "wire", package / "wire", ignore=shutil.ignore_patterns("__pycache__"))


def import_times_ms(processes: int) -> dict[str, list[float]]:
    """Return the milliseconds of each import in new processes that take turns, without the interpreter's start."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        write_prototype(Path(folder))
        install(Path(folder))
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
