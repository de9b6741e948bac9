"""`mockraft spark`: captured traffic on Spark. Each command registers itself here from its own file."""

from __future__ import annotations

import typer
from mockraft.commands.spark.options import need_spark

__all__ = ["need_spark", "register"]

ABOUT = """Captured traffic at volume: captures become tables, a proof of the codec, a replay, a report.

From a laptop's pcap to ring-buffer files on a cluster: each file is split over the cores, and a split changes nothing
in the result. pip install 'mockraft[spark]' brings PySpark; Java 17 or later must be there. Small captures need none of
it: see mockraft replay, and read_frames in Python.
"""


def register(app: typer.Typer) -> None:
    """Add the sub-application and its commands."""
    from mockraft.commands.spark import decode, replay, report

    spark = typer.Typer(help=ABOUT, no_args_is_help=True, rich_markup_mode=None)
    spark.callback()(_no_options_of_its_own)
    for commands in (decode, replay, report):
        commands.register(spark)
    app.add_typer(spark, name="spark", short_help="Captures as tables, checked, replayed and reported, on Spark.")


def _no_options_of_its_own() -> None:
    """Keeps a lone command behind its name."""
