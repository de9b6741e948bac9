"""Progress of Spark's tasks while a job runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mockraft.cli.spark.options import spark_session
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_INTERVAL_S = 0.3


class TaskProgress:
    """A row for each step with a bar of the running stages' tasks; without a terminal one line per step."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}"),
        )
        self._rows = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._row = self._rows.add_task("starting Spark", total=None, detail="")
        self._has_detail = False

    def step(self, name: str) -> None:
        """Begin the next step, which ends the one before it."""
        self._rows.update(self._row, total=1, completed=1)
        if not self._has_detail:
            self._rows.update(self._row, detail="")
        self._rows.stop_task(self._row)
        self._row = self._rows.add_task(name, total=None, detail="")
        self._has_detail = False
        if not self._console.is_terminal:
            self._console.print(f"mockraft spark: {name}", highlight=False, soft_wrap=True)

    def show(self, text: str) -> None:
        """Show a text beside the bar instead of the number of tasks."""
        self._has_detail = True
        self._rows.update(self._row, detail=text)

    @classmethod
    @contextmanager
    def on_spark(cls, master: str, conf: Sequence[str] | None) -> Iterator[tuple[SparkSession, TaskProgress]]:
        """Yield a session and its progress on stderr, which is shown until the block ends."""
        progress = cls(Console(stderr=True))
        with progress._rows, spark_session(master, conf) as spark, progress._watching(spark):
            yield spark, progress

    @contextmanager
    def _watching(self, spark: SparkSession) -> Iterator[None]:
        """Follow the session's stages until the block ends."""
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(spark, ended), daemon=True)
        # Spark Connect has no tracker of stages.
        if self._console.is_terminal and hasattr(spark, "sparkContext"):
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
            tasks, done = sum(each.numTasks for each in stages), sum(each.numCompletedTasks for each in stages)
            if tasks > 1:
                self._rows.update(self._row, total=tasks, completed=done)
                if not self._has_detail:
                    self._rows.update(self._row, detail=f"{done:,} of {tasks:,} tasks")
