"""Options shared by the `mockraft spark` commands that read captures, and their Spark session."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockraft.cli.exit_codes import ExitCode
from mockraft.cli.refusals import end_without
from mockraft.kafka_api.options import OptionError, blaming, option, required
from mockraft.spark_replay.capture_paths import NoCaptureError, capture_paths
from mockraft.spark_replay.storage import Location, LocationError
from mockraft.spark_replay.storage.locations import refuse_credentials

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY_LOG_HELP = "Secrets of TLS connections: what SSLKEYLOGFILE names. Those in a pcapng file are used without it."
_HINTS_MAX = 5
_LEFT_OUT = {
    "unknown_link": "of {}, which is not known; the source's option linktype=1 reads them as Ethernet",
    "fragments": "are IP fragments of packets that are not here as a whole",
    "not_tcp": "are {}",
}


@dataclass(frozen=True, kw_only=True)
class SparkOptions:
    """Options of commands that read captures on Spark."""

    captures: list[str] = required(
        metavar="PATH", help="A capture, a quoted glob, or a folder; a path or URL (s3://…); repeatable."
    )
    ports: str | None = option(None, metavar="PORT[,PORT]", help="The servers' ports. Default: all.")
    on_error: str = option(
        "fail", metavar="WHAT", help="For damaged files: fail, quarantine (add to file_events), skip."
    )
    key_log: str | None = option(None, metavar="FILE", help=KEY_LOG_HELP)
    more: list[str] | None = option(
        None, "--option", metavar="NAME=VALUE", help="An option of the source (splitBytes=16m); repeatable."
    )
    master: str = option(
        "local[*]", metavar="URL", help="Spark master: local[4], spark://host:7077, yarn, sc://host:15002, …"
    )
    conf: list[str] | None = option(
        None, metavar="NAME=VALUE", help="A Spark setting (spark.driver.memory=8g); repeatable."
    )

    def source(self, **more: str | None) -> dict[str, object]:
        """Return the options for `tables.frames`, with more of them. Raises OptionError for an invalid one."""
        from mockraft.spark_replay.spark.options import OptionError, SourceOptions

        given = {
            "ports": self.ports,
            "onError": self.on_error,
            "keyLog": self.key_log,
            **more,
            **pairs(self.more, "--option"),
        }
        options = {name: value for name, value in given.items() if value is not None}
        try:
            SourceOptions.read({"level": "frames"} | options, levels=("frames",))
        except OptionError as error:
            raise OptionError(str(error)) from None
        return dict(options)

    def files(self) -> list[str]:
        """Return the files of --captures. Raises OptionError if there are none."""
        with blaming("--captures", NoCaptureError):
            found = capture_paths(self.captures)
        if self.master.startswith("local"):
            return found
        # The processes of a cluster run in folders of their own.
        return [path if "://" in path else os.path.abspath(path) for path in found]

    def no_kafka(self, files: Sequence[str]) -> str:
        """Return a message for captures without any frame."""
        return no_kafka(files, self.ports, self.key_log)


def no_kafka(files: Sequence[str], ports: str | None, key_log: str | None = None, *, are_captures: bool = True) -> str:
    """Return a message for captures, or a folder of tables, without any frame: what is there, and what to try."""
    where = files[0] if len(files) == 1 else f"{len(files):,} files"
    lines = [f"no Kafka frame {f'on port {ports} ' if ports else ''}was found in {where}"]
    if are_captures:
        lines += hints(files, key_log)
    return "\n  ".join(lines)


def hints(files: Sequence[str], key_log: str | None) -> Iterator[str]:
    """Yield what captures have instead of frames."""
    from mockraft.spark_replay.seen_traffic import seen_traffic

    traffic, left_out = seen_traffic(files, key_log)
    without = f"{key_log} has no secrets of their handshakes" if key_log else "try --key-log FILE (SSLKEYLOGFILE)"
    for each in traffic[:_HINTS_MAX]:
        what = f"port {each.port}: "
        if each.frames:
            yield f"{what}{each.frames:,} Kafka frames; try --ports {each.port}"
        elif each.with_tls:
            yield f"{what}TLS on {_connections(each.with_tls)}; {without}"
        else:
            alone = f"if only responses were captured, try --ports {each.port}"
            yield f"{what}{_connections(each.connections)}, not of Kafka; {alone}"
    if len(traffic) > _HINTS_MAX:
        yield f"{len(traffic) - _HINTS_MAX:,} more ports"
    for kind, what in _LEFT_OUT.items():
        counts = Counter[str]()
        for row in left_out:
            counts[row["detail"]] += row["count"] * (row["kind"] == kind)
        for detail, count in (+counts).items():
            yield f"{count:,} packets {what.format(detail)}"


def _connections(count: int) -> str:
    return f"{count:,} connection{'s' * (count != 1)}"


def need_spark() -> None:
    """End the command with an installation hint if PySpark is missing; call before importing it."""
    if importlib.util.find_spec("pyspark") is None:
        end_without("spark", "pyspark", "spark")


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return NAME=VALUE options as a dict. Raises OptionError for one without =."""
    if wrong := [each for each in given or () if "=" not in each]:
        raise OptionError(f"{wrong[0]!r} is not NAME=VALUE", option)
    return {name.strip(): value for name, _, value in (each.partition("=") for each in given or ())}


def sparks_path(text: str, option: str = "--out") -> str:
    """Return a folder as Spark takes it, wherever its driver runs. Raises OptionError for one that cannot be used."""
    with blaming(option, LocationError):
        Location.parse(text)
    return text.rstrip("/") if "://" in text else os.path.abspath(text)


def step(name: str) -> None:
    """Print the next step; Spark shows its tasks below."""
    print(f"mockraft spark: {name}", file=sys.stderr)


@contextmanager
def spark_session(master: str, conf: Sequence[str] | None) -> Iterator[SparkSession]:
    """Yield a session that ends with the block.

    Errors are one line on stderr and an exit code: FAILED for a failed job, USAGE for a file that cannot be read or
    written, MISSING without Java, INTERRUPTED for Ctrl-C.
    """
    settings = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()} | pairs(conf, "--conf")
    need_spark()
    with blaming("--conf", LocationError):
        refuse_credentials(settings, "setting")
    from mockraft.spark_replay.spark.session import JavaMissingError, start_session
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    logging.disable(logging.ERROR)  # py4j logs tracebacks of errors that it also raises
    spark = None
    try:
        spark = start_session(master, settings)
        # Spark's handler cancels the jobs first, and if that fails PySpark before 4.2 raises no KeyboardInterrupt
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield spark
    except JavaMissingError as error:
        print(f"mockraft spark: {error}", file=sys.stderr)
        raise SystemExit(ExitCode.MISSING) from None
    except (PySparkException, Py4JError, OSError, KeyboardInterrupt) as error:
        if is_interrupt(error):
            print("mockraft spark: interrupted", file=sys.stderr)
            raise SystemExit(ExitCode.INTERRUPTED) from None
        is_sparks = isinstance(error, (PySparkException, Py4JError, ConnectionError))
        print(f"mockraft spark: {reason_of(str(error)) if is_sparks else error}", file=sys.stderr)
        is_ours = "CaptureError: " in str(error) or not is_sparks
        raise SystemExit(ExitCode.USAGE if is_ours else ExitCode.FAILED) from None
    finally:
        if spark is not None:
            with suppress(Py4JError, ConnectionError):
                if (context := getattr(spark, "sparkContext", None)) is not None:
                    context.setLogLevel("OFF")  # running tasks log errors when the session ends
                spark.stop()
        logging.disable(logging.NOTSET)


def is_interrupt(error: BaseException | None) -> bool:
    """Return True for Ctrl-C, and for an error raised while it was handled (py4j fails to cancel the job)."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or is_interrupt(error.__context__))


def reason_of(text: str) -> str:
    """Return the message of our own error inside Spark's text, of a Python worker's error, or of Java's last cause."""
    ours: list[str] = re.findall(r"mockraft\.[\w.]+\.(?:\w+Error|SplitDesync): (.+)", text)
    raised: list[str] = re.findall(
        r"^((?:\w+\.)*\w+(?:Error|Exception): .+)$", text.partition(" SQLSTATE")[0], re.MULTILINE
    )
    causes: list[str] = re.findall(r"^(?:Caused by)?: (?:[\w$]+\.)*([\w$]+: .+)$", text, re.MULTILINE)
    first = next((line for line in text.strip().splitlines() if line), "the job failed")
    return (ours or raised or causes or [first])[-1]
