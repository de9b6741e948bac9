"""`mockraft spark`: captured traffic on Spark. Each command registers itself here from its own file."""

from __future__ import annotations

import typer
from mockraft.cli.spark.options import need_spark

__all__ = ["need_spark", "register"]

ABOUT = """Process large captures with Spark: decode to tables, verify the codec, replay, report.

Files are split over the cores of one machine or a cluster; splits do not change the result. Install PySpark with
pip install 'mockraft[spark]'; Java 17 or later is needed. report needs neither (pip install 'mockraft[report]'), nor do
mockraft replay, and read_frames in Python.
"""


def register(app: typer.Typer) -> None:
    """Add the sub-application and its commands."""
    from mockraft.cli.spark import decode, replay, report

    spark = typer.Typer(help=ABOUT, no_args_is_help=True, rich_markup_mode=None)
    spark.callback()(_no_options_of_its_own)
    for commands in (decode, replay, report):
        commands.register(spark)
    app.add_typer(spark, name="spark")


def _no_options_of_its_own() -> None:
    """Keeps a lone command behind its name."""
