"""`mockraft spark`: captured traffic on Spark. Each command registers itself here from its own file."""

from __future__ import annotations

import importlib.util

import typer

ABOUT = """Captured traffic at volume: captures become tables, a proof of the codec, a replay, a report.

From a laptop's pcap to ring-buffer files on a cluster: each file is split over the cores, and a split changes nothing
in the result. pip install 'mockraft[spark]' brings PySpark; Java 17 or later must be there. Small captures need none of
it: see mockraft replay, and read_frames in Python.
"""

MISSING = 3


def register(app: typer.Typer) -> None:
    """Add the sub-application and its commands."""
    spark = typer.Typer(help=ABOUT, no_args_is_help=True, rich_markup_mode=None)
    spark.callback()(_no_options_of_its_own)
    app.add_typer(spark, name="spark", short_help="Captures as tables, checked, replayed and reported, on Spark.")


def need_spark() -> None:
    """Say in one line how to get PySpark and end (exit code 3) where it is missing; call before importing it."""
    if importlib.util.find_spec("pyspark") is None:
        typer.echo("mockraft spark: PySpark is missing: pip install 'mockraft[spark]'", err=True)
        raise typer.Exit(MISSING)


def _no_options_of_its_own() -> None:
    """Keeps a lone command behind its name."""
