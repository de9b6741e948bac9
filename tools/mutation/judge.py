"""A pytest plugin that runs the tests once, and then some of them for each mutant, in a process of its own.

A process is forked from one that has imported and collected everything, gets the mutant's code (`swap`) and runs only
the tests that reach the changed statement, quickest first, until one fails.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import time
from collections import Counter
from enum import Enum
from typing import NamedTuple

import pytest

from .coverage_by_test import CoverageByTest
from .mutants import Mutant
from .swap import LiveFunctions, clear_caches, live_functions, swap

CPU_SECONDS_MIN = 10
CPU_FACTOR = 10
"""CPU time of a mutant beyond that of its tests without it: an endless loop is a failure."""
WALL_SECONDS = 120
"""Limit for a mutant that waits for ever."""
MEMORY_BYTES_MAX = 8 << 30
POLL_SECONDS = 0.005


class MutantVerdict(Enum):
    """Outcome of a mutant. The values are exit codes of its process."""

    SURVIVED = 0
    KILLED = 1
    SAME_CODE = 3
    """The change is none: it compiles to the same code, or runs at import only. It does not count."""
    NOT_REACHED = 4
    """No test runs the statement; a survivor."""
    TIMED_OUT = 5
    """Killed, by a limit."""


class Trial(NamedTuple):
    """A running mutant."""

    mutant: Mutant
    deadline: float


class Judge:
    """Judges mutants until `sample` of them count."""

    def __init__(self, mutants: list[Mutant], sample: int, jobs: int) -> None:
        self.mutants = iter(mutants)
        self.sample = sample
        self.jobs = jobs
        self.verdicts: dict[Mutant, MutantVerdict] = {}
        self.counts: Counter[MutantVerdict] = Counter()
        self.failed: list[str] = []
        self.coverage = CoverageByTest({mutant.module for mutant in mutants})
        self._seconds: list[float] = []
        self._live: LiveFunctions = {}
        self._in_trial = False
        self._running: dict[int, Trial] = {}

    @property
    def counted(self) -> int:
        """Number of mutants with a verdict that counts."""
        return self.counts.total() - self.counts[MutantVerdict.SAME_CODE]

    @property
    def killed(self) -> int:
        """Number of mutants that a test found."""
        return self.counts[MutantVerdict.KILLED] + self.counts[MutantVerdict.TIMED_OUT]

    @property
    def survivors(self) -> list[Mutant]:
        """Mutants that no test found, by place."""
        alive = (MutantVerdict.SURVIVED, MutantVerdict.NOT_REACHED)
        found = [mutant for mutant, verdict in self.verdicts.items() if verdict in alive]
        return sorted(found, key=lambda each: (each.path, each.lines))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run everything once, then judge."""
        for index, item in enumerate(session.items):
            following = session.items[index + 1] if index + 1 < len(session.items) else None
            started = time.process_time()
            with self.coverage.record(index):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._seconds.append(time.process_time() - started)
        if not self.failed:
            print(f"\n{len(session.items)} tests, {sum(self._seconds):.0f} s of CPU with coverage", flush=True)
            gc.unfreeze()  # `get_objects` would leave out what the tests' conftest has frozen
            clear_caches()
            self._live = live_functions(self.coverage.modules)
            gc.collect()
            gc.freeze()
            self._judge_all(session.items)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End a mutant's process at its first failure."""
        if report.failed and self._in_trial:
            os._exit(MutantVerdict.KILLED.value)
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")

    def _judge_all(self, items: list[pytest.Item]) -> None:
        for mutant in self.mutants:
            while len(self._running) >= min(self.jobs, self.sample - self.counted):
                self._reap()
                if self.counted >= self.sample:
                    break
            if self.counted + len(self._running) >= self.sample:
                break
            tests = sorted(self.coverage.of_lines(mutant.module, *mutant.lines), key=self._seconds.__getitem__)
            if tests:
                self._start(mutant, tests, items)
            else:
                self._note(mutant, MutantVerdict.NOT_REACHED)
        while self._running:
            self._reap()

    def _start(self, mutant: Mutant, tests: list[int], items: list[pytest.Item]) -> None:
        pid = os.fork()
        if pid == 0:
            self._in_trial = True
            with contextlib.suppress(BaseException):
                self._try(mutant, tests, items)
                os._exit(MutantVerdict.SURVIVED.value)
            os._exit(MutantVerdict.KILLED.value)
        self._running[pid] = Trial(mutant, time.monotonic() + WALL_SECONDS)

    def _try(self, mutant: Mutant, tests: list[int], items: list[pytest.Item]) -> None:
        """Run the tests with the mutant's code; leave the process at the first failure."""
        os.setpgid(0, 0)
        items[0].config.pluginmanager.unregister(name="terminalreporter")
        seconds = CPU_SECONDS_MIN + int(CPU_FACTOR * sum(self._seconds[test] for test in tests))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        try:
            swapped = swap(self._live, mutant.module, mutant.source, mutant.make_source(), str(mutant.path))
        except (SyntaxError, ValueError):
            # Code with other free variables does not fit the function.
            swapped = 0
        if not swapped:
            os._exit(MutantVerdict.SAME_CODE.value)
        chosen = [items[test] for test in tests]
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _reap(self) -> None:
        """Wait until one mutant's process ends."""
        while not self._note_ended():
            now = time.monotonic()
            for pid, trial in self._running.items():
                if now > trial.deadline:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)

    def _note_ended(self) -> bool:
        """Note the verdicts of processes that have ended; return False if none has."""
        before = len(self._running)
        for pid in list(self._running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                verdict = MutantVerdict.TIMED_OUT if os.WIFSIGNALED(status) else MutantVerdict(os.WEXITSTATUS(status))
                self._note(self._running.pop(pid).mutant, verdict)
        return len(self._running) < before

    def _note(self, mutant: Mutant, verdict: MutantVerdict) -> None:
        self.verdicts[mutant] = verdict
        self.counts[verdict] += 1
        if verdict in (MutantVerdict.SURVIVED, MutantVerdict.NOT_REACHED):
            print(f"{verdict.name.lower()}  {mutant}", flush=True)
        if self.counts.total() % 100 == 0:
            print(f"… {self.counted} of {self.sample}, {self.killed} killed", flush=True)
