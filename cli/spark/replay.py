"""`mockraft spark replay`: replay captures session by session, also as a regression test."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import api_filter, end, host_and_port, write_file, write_json
from mockraft.cli.spark.options import SparkOptions, need_spark, spark_session, sparks_path, step
from mockraft.cli.terminal import Terminal
from mockraft.cli.traffic.replay import show_counts, show_line, show_rows
from mockraft.files.trees import GivenFileError
from mockraft.kafka_api.options import OptionError, blaming, option
from mockraft.releases import release
from mockraft.spark_replay.regression.junit import as_junit
from mockraft.spark_replay.regression.replay import Options
from mockraft.spark_replay.regression.rules import RuleError, Rules, read_rules, write_rules
from mockraft.spark_replay.regression.send_order import ORDERS
from mockraft.spark_replay.regression.targets import WHEEL, Endpoint, FreshProcess, TargetError, install

if TYPE_CHECKING:
    from mockraft.spark_replay.regression.session_replay import Run
    from mockraft.spark_replay.regression.targets import Target
    from mockraft.spark_replay.regression.verdict import ReportRow
    from pyspark.sql import DataFrame

ABOUT = """Send the requests of captures to a controller again, on Spark, and compare its responses.

Captures are split into cluster sessions: all requests to one cluster's controllers. The target is a running controller
(HOST:PORT; sessions are sent one after the other, each request once) or mockraft: a new controller for each session, in
parallel. As a regression test, use --baseline with an earlier run's --out or a second target: differences that the
baseline also has do not count.

  mockraft spark replay --captures 'night/*.pcap' --target mockraft --out replayed
  mockraft spark replay --captures night.pcap --target mockraft==1.2 --baseline replayed --json report.json
  mockraft spark replay --captures night.pcap --target mine:9093 --order paced --rules rules.toml
  mockraft spark replay --print-rules

""" + exit_codes(
    ExitCode.NO_ANSWER,
    ExitCode.MISSING,
    ExitCode.INTERRUPTED,
    done="all responses as captured (or as in the baseline)",
    failed="differences",
)


def _print_rules() -> None:
    for line in write_rules(Rules()):
        print(line)


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(SparkOptions):
    """Options of `mockraft spark replay`."""

    target: str = option("mockraft", metavar="HOST:PORT|mockraft[==V]|WHEEL", help="Target of the requests.")
    baseline: str | None = option(None, metavar="DIR|TARGET", help="Ignore differences that this run also has.")
    order: str = option("causal", help="causal or paced (see docs/how-to/captures/spark-replay.md).")
    speed: float = option(1.0, lowest=1e-6, help="With --order paced: a multiple of the capture's pace.")
    rules: Path | None = option(None, help="A TOML file of rules that override the generated ones.")
    print_rules: bool = option(False, action=_print_rules, help="Print the generated rules and exit.")
    release: str | None = option(None, help="Kafka release of the target mockraft. Default: the captured one.")
    filters: list[str] | None = option(
        None, "--filter", metavar="API[,API]", help="Send only these APIs, or with ! all others."
    )
    target_python: str | None = option(
        None, metavar="PATH", help="Python interpreter on the workers whose mockraft is started."
    )
    out: str | None = option(
        None, metavar="DIR", help="Write the tables to this folder, as Parquet; earlier ones are replaced."
    )
    json_file: Path | None = option(None, "--json", help="Write the report to this file; - for stdout.")
    junit_file: Path | None = option(None, "--junit", help="Write a JUnit file with a test case for each API.")
    html: str | None = option(None, metavar="FILE", help="Write the report as an HTML page.")
    show_secrets: bool = option(False, help="Keep passwords, keys, tokens and sensitive configs.")
    master: str = option(
        "local[2]", metavar="URL", help="Spark master: local[4], spark://host:7077, yarn, sc://host:15002, …"
    )


def replay(options: ReplayOptions) -> None:
    """Replay; see ABOUT."""
    from mockraft.spark_replay.regression.session_replay import Run

    if options.order not in ORDERS:
        raise OptionError(f"{options.order!r} is not one of {', '.join(ORDERS)}", "--order")
    kept = api_filter(options.filters)
    how = Options(
        order=options.order,
        speed=options.speed,
        rules=rules_of(options.rules),
        kept=kept,
        show_secrets=options.show_secrets,
    )
    target = target_of(options.target, options.target_python)
    if options.release is not None:
        if isinstance(target, Endpoint):
            raise OptionError(f"{target.name} has a release already; --release is for mockraft", "--release")
        with blaming("--release"):
            target.release = release(options.release).name
    run = Run(uuid.uuid4().hex[:12], target, how)
    baseline, out = options.baseline, options.out
    earlier: Run | str | None = None
    if baseline is not None and ("://" in baseline or Path(baseline).is_dir()):
        earlier = sparks_path(baseline, "--baseline")
    elif baseline is not None:
        earlier = run._replace(run_id=f"{run.run_id}-baseline", target=target_of(baseline, None, "--baseline"))
    need_spark()
    from mockraft.spark_replay.spark.session import CONNECT
    from mockraft.spark_replay.spark.tables import exchanges, frames

    targets = [each.target for each in (run, earlier) if isinstance(each, Run)]
    if options.master.startswith(CONNECT) and any(target.is_shared for target in targets):
        why = "a running controller cannot be the target over Spark Connect; mockraft and mockraft==VERSION can"
        raise OptionError(why, "--target")
    source: dict[str, Any] = options.source()
    files = options.files()
    if out is not None:
        out = sparks_path(out)
        if earlier == out:
            raise OptionError(f"{out} is the baseline, which this run would replace", "--out")
    settings = ["spark.task.maxFailures=1", "spark.speculation=false", *(options.conf or ())]
    with ExitStack() as stack:
        folder = out or stack.enter_context(tempfile.TemporaryDirectory(prefix="mockraft-spark-replay-"))
        spark = stack.enter_context(spark_session(options.master, settings))
        captured = exchanges(frames(spark, files, **source), unanswered=True)
        found = _on_spark(spark, captured, run, earlier, folder)
        if options.html is not None:
            step(f"writing {options.html}")
            _write_html(options.html, files, folder, options)
    if not found["apis"] and not found["leftOut"]:
        raise OptionError(options.no_kafka(files), "--captures")
    write_json("spark replay", options.json_file, found)
    if options.junit_file is not None:
        write_file("spark replay", options.junit_file, as_junit(found))
    if options.json_file != Path("-"):
        _show(found)
    if found["different"]:
        raise SystemExit(ExitCode.FAILED)


def rules_of(path: Path | None) -> Rules:
    """Return the rules with the overrides of a file. Raises OptionError for an invalid one."""
    if path is None:
        return Rules()
    try:
        with blaming("--rules", GivenFileError):
            return read_rules(path)
    except RuleError as error:
        raise OptionError(f"{path}: {error}", "--rules") from None


def target_of(text: str, python: str | None, flag: str = "--target") -> Target:
    """Parse `HOST:PORT`, `mockraft`, and `mockraft==VERSION` or a wheel, which are installed if needed."""
    is_wheel = text.endswith(WHEEL)
    name, equals, version = ("mockraft", "==", os.path.abspath(text)) if is_wheel else text.partition("==")
    if name != "mockraft":
        return Endpoint(*host_and_port(text, flag))
    if equals and python is None:
        with blaming(flag, TargetError):
            install(version)
    command = [python or sys.executable, "-m", "mockraft", "serve", "--host", "127.0.0.1", "--port", "0"]
    return FreshProcess(command, version=version if equals and python is None else None)


def _on_spark(spark: Any, captured: DataFrame, run: Run, earlier: Run | str | None, out: str) -> dict[str, Any]:
    from mockraft.cli.spark.known_answers import known_answers
    from mockraft.spark_replay.spark.replay_summary import summarise, write_summary
    from mockraft.spark_replay.spark.replaying import read_replay, write_replay

    def replayed(to: Run, folder: str) -> Any:
        step(f"replaying to {to.target.name}")
        return write_replay(spark, captured, to, folder)

    before = None
    try:
        if isinstance(earlier, str):
            before = read_replay(spark, earlier).diffs
        elif earlier is not None:
            before = replayed(earlier, f"{out}/baseline").diffs
        tables = replayed(run, out)
    except Exception as error:
        raise _exit_of(error) from None
    step("comparing")
    found = summarise(tables, run.options.rules or rules_of(None), before, known_answers)
    report = {"runId": run.run_id, "target": run.target.name, "order": run.options.order, **found}
    write_summary(out, report)
    return report


def _exit_of(error: Exception) -> BaseException:
    """Print the task's own error and return the exit for it; return other errors unchanged."""
    text = str(error)
    for name, code in (
        ("TargetError", ExitCode.NO_ANSWER),
        ("DisconnectedError", ExitCode.NO_ANSWER),
        ("AlreadySentError", ExitCode.NO_ANSWER),
        ("CaptureError", ExitCode.USAGE),
        ("PATH_NOT_FOUND", ExitCode.USAGE),
    ):
        if name in text:
            line = next(line for line in text.splitlines() if name in line)
            print(f"mockraft spark replay: {line.partition(f'{name}: ')[2] or line}", file=sys.stderr)
            return SystemExit(code)
    return error


def _write_html(path: str, files: list[str], out: str, options: ReplayOptions) -> None:
    from mockraft.spark_replay.report.page import write_report
    from mockraft.spark_replay.report.sources import Captures

    servers = [int(each) for each in (options.ports or "").split(",") if each.strip()]
    try:
        captures = Captures(files, servers, key_log=options.key_log)
        write_report(path, captures, replay=out, show_secrets=options.show_secrets)
    except OSError as error:
        end("spark replay", f"cannot write {path}: {error}", ExitCode.USAGE)


def _show(found: dict[str, Any]) -> None:
    console = Terminal()
    _show_changes(console, found)
    show_counts(console, found)
    for each in found["rules"]:
        if each["override"] and not each["fired"]:
            console.print(f"\nthe rule {each['rule']} ({each['class']}) never fired", style="yellow")
    if found["known"] or found["gone"]:
        fields = f"{found['known']:,} still differ and {found['gone']:,} no longer do"
        console.print(f"\nof the fields that differ in the baseline {fields}")
    sessions = f"{found['sessions']:,} session{'' if found['sessions'] == 1 else 's'}"
    allowed = " or as in the baseline" if found["known"] else ""
    allowed += " or as their releases are known to differ" if found["intended"] else ""
    if any(each["override"] and each["fired"] for each in found["rules"]):
        allowed += " or as your rules permit"
    console.print(f"\n{found['same']:,} of {found['sent']:,} responses as captured{allowed}, in {sessions}")


def _show_changes(console: Terminal, found: ReportRow) -> None:
    """Print what changed for clients, then the known changes of the release, then what was masked and why."""
    releases = " and ".join(f"Kafka {each['captured']} to {each['live']}" for each in found["releases"])
    show_rows(console, "Changed", found["differences"])
    for note in found["notes"]:
        show_line(console, f"  Note: {note}", "yellow")
    if found["intended"]:
        show_rows(console, f"Known changes of {releases}", found["intended"])
    if found["masked"]:
        show_line(console, f"Masked ({sum(each['count'] for each in found['masked']):,} values)", "bold")
    for each in found["masked"]:
        show_line(console, f"  {each['count']:,} {each['class']}: {each['why']}", "dim")
    console.print()


COMMAND = Command("replay", replay, ABOUT)
