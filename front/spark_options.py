"""Options that every `mockraft spark` command has which reads captures, and the session that it runs on."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED = 1
MISSING = 3

Captures = Annotated[
    list[str], typer.Option(metavar="PATH", help="A capture, a glob in quotes, or a folder. Repeat for more.")
]
Ports = Annotated[str | None, typer.Option(metavar="PORT[,PORT]", help="The servers' ports. Default: all.")]
Apis = Annotated[str | None, typer.Option(metavar="API[,API]", help="Only these APIs, by name or key.")]
Clients = Annotated[str | None, typer.Option(metavar="HOST[,HOST]", help="Only what these addresses sent or got.")]
TimeFrom = Annotated[str | None, typer.Option(metavar="TIME", help="From here on: 2026-11-20T10:00:00Z, or ns.")]
TimeTo = Annotated[str | None, typer.Option(metavar="TIME", help="Up to here, itself left out.")]
OnError = Annotated[
    str, typer.Option(metavar="WHAT", help="A damaged file: fail, quarantine (tell of it in file_events), skip.")
]
More = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the source (splitBytes=16m). Repeat for more."),
]
Master = Annotated[str, typer.Option(metavar="URL", help="Where Spark runs: local[4], spark://host:7077, yarn, …")]
Partitions = Annotated[
    int | None, typer.Option(min=1, help="Parts of the shuffle. Default: spark.sql.shuffle.partitions.")
]
Conf = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of Spark's (spark.driver.memory=8g).")
]


def need_spark() -> None:
    """Say in one line how to get PySpark and end (exit code 3) where it is missing; call before importing it."""
    if importlib.util.find_spec("pyspark") is None:
        typer.echo("mockraft spark: PySpark is missing: pip install 'mockraft[spark]'", err=True)
        raise typer.Exit(MISSING)


def source_options(
    *,
    ports: str | None = None,
    apis: str | None = None,
    clients: str | None = None,
    time_from: str | None = None,
    time_to: str | None = None,
    on_error: str = "fail",
    more: Sequence[str] | None = None,
) -> dict[str, object]:
    """The options as `tables.frames` takes them, checked; a bad option where one is."""
    from mockraft.spark_replay.spark.options import OptionError, SourceOptions

    given = {
        "ports": ports,
        "apiKeys": apis,
        "clients": clients,
        "timeFrom": time_from,
        "timeTo": time_to,
        "onError": on_error,
        **pairs(more, "--option"),
    }
    options = {name: value for name, value in given.items() if value is not None}
    try:
        SourceOptions.read({"level": "frames"} | options, levels=("frames",))
    except OptionError as error:
        raise typer.BadParameter(str(error)) from None
    return dict(options)


def existing_captures(paths: Sequence[str]) -> list[str]:
    """The files that --captures names; a bad option where it names none."""
    from mockraft.spark_replay.spark.capture_paths import NoCaptureError, capture_paths

    try:
        return capture_paths(paths)
    except NoCaptureError as error:
        raise typer.BadParameter(str(error), param_hint="--captures") from None


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE options as a dict; a bad option where there is no =."""
    if wrong := [each for each in given or () if "=" not in each]:
        raise typer.BadParameter(f"{wrong[0]!r} is not NAME=VALUE", param_hint=option)
    return {name.strip(): value for name, _, value in (each.partition("=") for each in given or ())}


@contextmanager
def spark_session(master: str, conf: Sequence[str] | None) -> Iterator[SparkSession]:
    """A session that ends with the block; a failed job becomes one line and exit code 1, missing Java one and 3."""
    settings = pairs(conf, "--conf")
    need_spark()
    from mockraft.spark_replay.spark.session import JavaMissingError, start_session
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        spark = start_session(master, settings)
    except JavaMissingError as error:
        typer.echo(f"mockraft spark: {error}", err=True)
        raise typer.Exit(MISSING) from None
    try:
        yield spark
    except (PySparkException, Py4JJavaError) as error:
        typer.echo(f"mockraft spark: {reason_of(str(error))}", err=True)
        raise typer.Exit(FAILED) from None
    finally:
        spark.stop()


def reason_of(text: str) -> str:
    """Our own error out of what Spark wraps around it, or what a Python worker raised, or Spark's first line."""
    ours: list[str] = re.findall(r"mockraft\.[\w.]+\.(?:\w+Error|SplitDesync): (.+)", text)
    raised: list[str] = re.findall(
        r"^((?:\w+\.)*\w+(?:Error|Exception): .+)$", text.partition(" SQLSTATE")[0], re.MULTILINE
    )
    first = next((line for line in text.strip().splitlines() if line), "the job failed")
    return (ours or raised or [first])[-1]
