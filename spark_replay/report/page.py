"""Render the report as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from datetime import UTC, datetime
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from os import PathLike, fspath

from mockraft.spark_replay.regression.verdict import change_text, first_text
from mockraft.spark_replay.report import replay_sections, sections
from mockraft.spark_replay.report.captured import Frames, frame_key, frames_of_tables, traffic_of_captures
from mockraft.spark_replay.report.drawing import Plot
from mockraft.spark_replay.report.events import DISPLAY_NAMES, LOUD
from mockraft.spark_replay.report.examples import api_name, replay_command
from mockraft.spark_replay.report.replayed import Replayed
from mockraft.spark_replay.report.sources import (
    Captures,
    Folder,
    OnRows,
    replay_of_tables,
    rules_of,
    traffic_of_tables,
    verdict_of,
)
from mockraft.spark_replay.report.traffic import Traffic
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.whole_files import write_file
from mockraft.wire.printable import printable_value

_KINDS = ("changed", "missing", "extra", "order")
_IN_JSON = (
    "title",
    "sources",
    "total",
    "apis",
    "happenings",
    "resets",
    "heartbeats",
    "errors",
    "forwarded",
    "replay",
    "differences",
    "rules",
)
_CELL_MAX = 120


class NoTemplatesError(RuntimeError):
    """Raised if Jinja2 or matplotlib is not installed; the message explains how to install them."""


def write_report(
    out: str | PathLike[str],
    source: Folder | Captures | None = None,
    *,
    replay: Folder | None = None,
    title: str | None = None,
    show_secrets: bool = False,
    on_rows: OnRows = lambda _, __, ___: None,
) -> dict[str, object]:
    """Write the report of tables or of captures and of their replay, and return its numbers as JSON.

    Args:
        out: the HTML file.
        source: a folder of Parquet tables (messages, and optionally conn_events, file_events and frames), or captures,
            which are read and decoded here.
        replay: a folder with the tables replay_results and diffs.
        title: the page's heading.
        show_secrets: show passwords, keys, tokens and sensitive configs, unless the tables hide them already.
        on_rows: called with progress.

    Raises:
        SourceError: a table, a column or a capture is missing or cannot be read.
        NoTemplatesError: Jinja2 or matplotlib is missing.
        OSError: the file cannot be written.
    """
    replayed = replay_of_tables(replay, on_rows) if replay else None
    examples = replay_sections.shown_examples(replayed) if replayed else []
    wanted = {(row["conn_id"], row["incarnation"], row["request_frame_no"], False) for _, row in examples}
    traffic: Traffic | None = None
    frames: Frames = {}
    sources: list[str] = []
    captures = source if isinstance(source, Captures) else Captures(())
    if isinstance(source, Captures):
        traffic, frames = traffic_of_captures(source, wanted, on_rows)
        sources = [Location.parse(path).name for path in source.paths[:5]] + (["…"] if len(source.paths) > 5 else [])
    elif source is not None:
        traffic = traffic_of_tables(source, on_rows)
        wanted |= {frame_key(row) for row in traffic.examples.values()}
        frames = frames_of_tables(source, wanted)
        sources = [str(source)]
    content: dict[str, object] = {"sources": [*sources, *([f"replay {replay}"] if replay else [])]}
    if traffic is not None:
        content |= _traffic(traffic, frames, show_secrets=show_secrets)
    if replayed is not None and replay is not None:
        content |= _replay(replayed, replay, frames, show_secrets=show_secrets)
        content["replay_command"] = replay_command([fspath(path) for path in captures.paths], sorted(captures.ports))
    content["title"] = title or ("Replay results" if replayed else "Captured Kafka traffic")
    summary = _summary(content)
    if traffic is not None:
        content |= _pictures(traffic)
    write_file(Location.parse(out), _rendered(content).encode("utf-8", "backslashreplace"))
    return summary


def _traffic(traffic: Traffic, frames: Frames, *, show_secrets: bool) -> dict[str, object]:
    pairs = sections.pairing(traffic)
    paired = pairs.get("paired", 0) + pairs.get("acks0", 0)
    brokers, alarm_ns = sections.brokers_by_silence(traffic)
    listed = sections.event_rows(traffic)
    shown, others = sections.clients(traffic)
    counts, sizes = traffic.events.counts.counts, traffic.events.bytes.counts
    moments = Counter(each.kind for each in traffic.events.happened((traffic.first_ns or 0, traffic.last_ns or 0)))
    moments["registered"] = max(moments["registered"], counts.get("registered", 0))
    happened = moments.total() + sum(counts.get(kind, 0) for kind in LOUD - {"rst"})
    return {
        "total": sections.totals(traffic),
        "paired": paired,
        "alone": traffic.frames - paired,
        "gaps": {"count": counts.get("gap", 0), "bytes": sizes.get("gap", 0)},
        "moments": moments,
        "damaged": sections.damaged(traffic),
        "more_happened": max(0, happened - len(listed)),
        "words": DISPLAY_NAMES,
        "apis": sections.apis(traffic),
        "happenings": listed,
        "resets": sections.reset_rows(traffic),
        "heartbeats": sections.heartbeat_rows(brokers, alarm_ns, traffic.first_ns or 0),
        "alarm_s": alarm_ns / 1e9,
        "errors": sections.errors(traffic),
        "clients": shown,
        "other_requests": others,
        "forwarded": sections.forwarded(traffic),
        "not_read": sections.not_read(traffic),
        "unread": sections.unread(traffic, frames, show_secrets=show_secrets),
    }


def _replay(replayed: Replayed, folder: Folder, frames: Frames, *, show_secrets: bool) -> dict[str, object]:
    examples = replay_sections.decoded_examples(replayed, folder, frames, show_secrets=show_secrets)
    used = {kind for (_, _, kind), _ in replayed.found[: replay_sections.PLACES_MAX]}
    return {
        "replay": replay_sections.replay_totals(replayed),
        "differences": replay_sections.differences(replayed),
        "kinds": [*[kind for kind in _KINDS if kind in used], *sorted(used.difference(_KINDS))],
        "examples": examples,
        "anchors": {(each["session"], each["number"]): f"example-{at}" for at, each in enumerate(examples, 1)},
        "rules": replay_sections.rules(replayed, rules_of(folder)),
        "verdict": verdict_of(folder),
    }


def _summary(content: dict[str, object]) -> dict[str, object]:
    summary = {name: content[name] for name in _IN_JSON if name in content}
    if "not_read" in content:
        summary["notRead"] = content["not_read"]
    return summary


def _pictures(traffic: Traffic) -> dict[str, Plot | None]:
    try:
        from mockraft.spark_replay.report import plots
    except ModuleNotFoundError:
        raise NoTemplatesError(_MISSING) from None
    span = traffic.first_ns or 0, traffic.last_ns or 0
    drawn: dict[str, Plot | None] = {"timeline": None, "latency": None, "heartbeat_plot": None}
    if traffic.requests:
        quiet_s = max(3.0, (span[1] - span[0]) / 1e11)
        drawn["timeline"] = plots.timeline(sections.series(traffic), traffic.events.listed(span), span, quiet_s)
    ranked = [str(row["api"]) for row in sections.apis(traffic) if row["ms"]][:12]
    if ranked:
        histograms = {api_name(key): histogram for key, histogram in traffic.latencies.items()}
        drawn["latency"] = plots.latencies({name: histograms[name] for name in ranked})
    brokers, alarm_ns = sections.brokers_by_silence(traffic)
    lively = {name: heartbeats for name, heartbeats in brokers[: sections.BROKERS_SHOWN] if heartbeats.intervals.total}
    if lively:
        drawn["heartbeat_plot"] = plots.heartbeats(lively, span, alarm_ns)
    return drawn


def _rendered(content: dict[str, object]) -> str:
    try:
        from jinja2 import Environment, FunctionLoader
    except ModuleNotFoundError:
        raise NoTemplatesError(_MISSING) from None
    folder = resources.files("mockraft.spark_replay.report")
    environment = Environment(
        autoescape=True,
        finalize=printable_value,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: _text(folder, name)),
    )
    environment.filters |= {
        "count": lambda number: f"{number:,}",
        "bytes": _bytes,
        "ms": _ms,
        "seconds": _seconds,
        "share": _share,
        "utc": lambda ns: f"{datetime.fromtimestamp(ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC",
        "change": change_text,
        "first": first_text,
        "brief": lambda text: "" if text is None else text if len(text) <= _CELL_MAX else f"{text[:_CELL_MAX]}…",
    }
    script = _text(folder, "report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        content,
        style=_text(folder, "report.css"),
        script=script,
        script_hash=digest,
        version=metadata.version("mockraft"),
    )


def _text(folder: Traversable, name: str) -> str:
    return folder.joinpath(name).read_text(encoding="utf-8")


_MISSING = "the report needs Jinja2 and matplotlib: pip install 'mockraft[report]'"


def _share(part: int, whole: int) -> str:
    """Return a share in percent; 100 % and 0 % only if exact."""
    if not whole or part == whole:
        return "100 %" if whole else "–"
    if not part:
        return "0 %"
    percent = min(99.99, max(0.01, 100 * part / whole))
    return f"{percent:.2f} %" if percent > 99 else f"{percent:.3g} %"


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}" if unit != "B" else f"{number} B"
        size /= 1000
    return f"{size:,.3g} TB"


def _ms(number: float) -> str:
    return f"{number:.2f} ms" if number < 10 else f"{number:.1f} ms" if number < 100 else _seconds(number / 1000)


def _seconds(number: float) -> str:
    if number < 1:
        return f"{number * 1000:.0f} ms"
    if number < 100:
        return f"{number:.1f} s"
    minutes, seconds = divmod(round(number), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"
