"""How far Spark's tasks are, told while a job runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_INTERVAL_S = 0.3


class TaskProgress:
    """A bar of the tasks of the stages that run now; without a terminal a line a step."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._row = self._bar.add_task("starting Spark", total=None)

    def step(self, name: str) -> None:
        """The next thing has begun."""
        self._bar.reset(self._row, description=name, total=None)
        if not self._console.is_terminal:
            self._console.print(f"mockraft spark: {name}", highlight=False)

    @contextmanager
    def shown(self) -> Iterator[TaskProgress]:
        """Show the bar."""
        with self._bar:
            yield self

    @contextmanager
    def watching(self, spark: SparkSession) -> Iterator[None]:
        """Follow the session's stages until the block ends."""
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(spark, ended), daemon=True)
        if self._console.is_terminal:
            watcher.start()
        try:
            yield
        finally:
            ended.set()
            if watcher.is_alive():
                watcher.join()

    def _watch(self, spark: SparkSession, ended: threading.Event) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(POLL_INTERVAL_S):
            stages = [stage for each in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(each))]
            if stages:
                done = sum(stage.numCompletedTasks for stage in stages)
                self._bar.update(self._row, total=sum(stage.numTasks for stage in stages), completed=done)
