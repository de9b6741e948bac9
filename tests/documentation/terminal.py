"""A terminal in which the commands of a page run one after the other, servers in the background."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from .console import Command, matches

_SERVER = re.compile(
    r"mockraft (?:serve|capture|broker(?!-)|run|twin --from|record --upstream|requests --follow)\b"
    r"|mockraft fleet(?![^#]* --for )"
    r"|kafka-server-start|moto_server"
)
_READY = re.compile(
    r"\b(?:ready|running) bootstrap=|\bRUNNING\b|\bunfenced [1-9]|\bKafka Server started\b|\* Running on http"
    r"|^ *\d+  \d\d:\d\d",
    re.MULTILINE,
)
_STATE = re.compile(r"(?:cd|export) [^;&|]+|\w+=\S*")
TIMEOUT_S = 180


class Terminal:
    """One shell: folder and variables last; a server ends when the page starts another one on its port, or ends."""

    def __init__(self, folder: Path, programs: Path | None = None) -> None:
        self.folder = folder
        self._state: list[str] = []
        self._servers: list[tuple[Command, str | None, subprocess.Popen[bytes], Path]] = []
        path = [*([str(programs)] if programs else []), str(Path(sys.executable).parent), os.environ["PATH"]]
        mockrafts = {name for name in os.environ if name.startswith(("MOCKRAFT_", "PYTEST_"))} - {"MOCKRAFT_CACHE"}
        self._environment = {name: value for name, value in os.environ.items() if name not in mockrafts}
        # pytest as in an environment with pytest-mockraft alone, whose one content is the name of the plugin.
        pytest = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "mockraft.pytest_plugin"}
        self._environment |= {"PATH": ":".join(path), "COLUMNS": "120", **pytest}

    def run(self, command: Command) -> None:
        """Run a command, and compare exit code and output; a server stays in the background once it is ready."""
        text = command.text.partition("  #")[0].strip()
        if _STATE.fullmatch(text):
            self._state.append(text)
        elif _SERVER.match(text):
            self._start(command, text)
        else:
            output = self.folder / f".output-{command.line}"
            process = self._shell(text, output)
            try:
                code = process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                _end(process)
                code = -1
            self._expect(command, output.read_text(), code=code)

    def _start(self, command: Command, text: str) -> None:
        port = _port(text)
        if port is not None and port in {other for _, other, _, _ in self._servers}:
            failed = self.close()
            assert failed == []
        output = self.folder / f".output-{command.line}-{len(self._servers)}"
        process = self._shell(f"exec {text} 2>>{output.name}.log", output)
        self._servers.append((command, port, process, output))
        deadline = time.monotonic() + TIMEOUT_S
        while not self._is_ready(command, output):
            if process.poll() is not None or time.monotonic() > deadline:
                self._expect(command, _read(output), code=process.poll(), is_ready=False)
            time.sleep(0.05)
        self._expect(command, output.read_text(), code=0, is_complete=False)

    @staticmethod
    def _is_ready(command: Command, output: Path) -> bool:
        return bool(_READY.search(_read(output))) and output.read_text().count("\n") >= len(command.shown)

    def _shell(self, text: str, output: Path) -> subprocess.Popen[bytes]:
        script = "\n".join(["set -eo pipefail", *self._state, text])
        with output.open("wb") as file:
            return subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @staticmethod
    def _expect(
        command: Command, output: str, *, code: int | None, is_complete: bool = True, is_ready: bool = True
    ) -> None:
        report = _report(command, output, code)
        assert is_ready, f"did not get ready: {report}"
        assert code == command.exit_code, report
        assert not command.shown or matches(command.shown, output, is_complete=is_complete), report

    def close(self) -> list[str]:
        """End the servers, the last one first; return reports of those that had ended by themselves with an error."""
        ended = [(_end(process), command, output) for command, _, process, output in reversed(self._servers)]
        self._servers.clear()
        return [_report(command, _read(output), code) for code, command, output in ended if code != 0]


def _report(command: Command, output: str, code: int | None) -> str:
    shown = "\n".join(command.shown)
    return f"line {command.line}: {command.text}\nexit code {code}\nshown:\n{shown}\noutput:\n{output[-6000:]}"


def _read(output: Path) -> str:
    """Return what a server printed, and then its log."""
    return output.read_text() + (log.read_text() if (log := output.with_name(f"{output.name}.log")).is_file() else "")


def _port(text: str) -> str | None:
    """Return the port that a server listens on, None if its clients are simulated brokers' alone."""
    if named := re.search(r"--(?:port|listen) (?:[\d.]+:)?(\d+)", text):
        return named[1]
    return "9093" if re.match(r"mockraft (?:serve|run)\b(?!-)", text) else None


def _end(process: subprocess.Popen[bytes]) -> int:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        code = process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return 0 if code in (-signal.SIGTERM, 128 + signal.SIGTERM) else code
