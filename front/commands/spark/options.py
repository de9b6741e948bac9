"""Options that every `mockraft spark` command has which reads captures, and the session that it runs on."""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

FAILED = 1
MISSING = 3
INTERRUPTED = 130

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
    int | None,
    typer.Option(min=1, help="Parts of the shuffle. Default: two a core; on a cluster spark.sql.shuffle.partitions."),
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


def writable_folder(out: str) -> None:
    """Make the folder that --out names; a bad option where that cannot be. One on another file system is left alone."""
    try:
        if "://" not in out:
            Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{out} cannot be a folder: {error.strerror}", param_hint="--out") from None


def no_kafka(files: Sequence[str], ports: str | None) -> str:
    """Return a message for captures without any frame."""
    where = files[0] if len(files) == 1 else f"{len(files):,} files"
    hint = "; without --ports every server counts that speaks Kafka" if ports else ""
    return f"no Kafka frame {f'on port {ports} ' if ports else ''}was found in {where}{hint}"


def result_console() -> Console:
    """Return the console for results: as wide as the terminal, and wide enough for every table where there is none."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


@contextmanager
def spark_session(master: str, conf: Sequence[str] | None) -> Iterator[SparkSession]:
    """A session that ends with the block.

    A failed job becomes one line and exit code 1, missing Java one and 3, Ctrl-C one and 130.
    """
    settings = pairs(conf, "--conf")
    need_spark()
    from mockraft.spark_replay.spark.session import JavaMissingError, start_session
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # lines are told by print: it knows of a bar on the screen, click's echo does not
    logging.disable(logging.ERROR)  # py4j's tracebacks of what it raises, too, or of Ctrl-C
    spark = None
    try:
        spark = start_session(master, settings)
        yield spark
    except JavaMissingError as error:
        print(f"mockraft spark: {error}", file=sys.stderr)
        raise typer.Exit(MISSING) from None
    except (PySparkException, Py4JError, OSError, KeyboardInterrupt) as error:
        if is_interrupt(error):
            print("mockraft spark: interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        is_sparks = isinstance(error, (PySparkException, Py4JError, ConnectionError))
        print(f"mockraft spark: {reason_of(str(error)) if is_sparks else error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    finally:
        if spark is not None:
            with suppress(Py4JError, ConnectionError):
                spark.sparkContext.setLogLevel("OFF")  # tasks that go on complain of the end
                spark.stop()
        logging.disable(logging.NOTSET)


def is_interrupt(error: BaseException | None) -> bool:
    """Return True for Ctrl-C, and for an error while it was handled (py4j has nothing to cancel with)."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or is_interrupt(error.__context__))


def reason_of(text: str) -> str:
    """Our own error out of what Spark wraps around it, or what a Python worker raised, or Java's last cause."""
    ours: list[str] = re.findall(r"mockraft\.[\w.]+\.(?:\w+Error|SplitDesync): (.+)", text)
    raised: list[str] = re.findall(
        r"^((?:\w+\.)*\w+(?:Error|Exception): .+)$", text.partition(" SQLSTATE")[0], re.MULTILINE
    )
    causes: list[str] = re.findall(r"^(?:Caused by)?: (?:[\w$]+\.)*([\w$]+: .+)$", text, re.MULTILINE)
    first = next((line for line in text.strip().splitlines() if line), "the job failed")
    return (ours or raised or causes or [first])[-1]
