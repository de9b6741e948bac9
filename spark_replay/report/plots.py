"""The figures of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter
from mockraft.spark_replay.report.drawing import BAD, DIM, GOOD, INK, LINE, SERIES, Plot, Shape, bare, plot
from mockraft.spark_replay.report.events import DISPLAY_NAMES, TrafficEvent
from mockraft.spark_replay.report.heartbeats import BrokerHeartbeats
from mockraft.spark_replay.report.sketches import WIDTHS_S, LogHistogram, TimeBins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rates = npt.NDArray[np.float64]
_POINTS_MAX = 320
_LANES = {
    "new leader": SERIES[4],
    "registered": SERIES[0],
    "unfenced": GOOD,
    **dict.fromkeys(("shutting down", "unregistered", "leader moved"), SERIES[3]),
    **dict.fromkeys(("topic created", "topic deleted", "config changed"), SERIES[0]),
    **dict.fromkeys(("fenced", "no leader", "gap", "desync", "hole", "conflict", "oversized"), BAD),
    **dict.fromkeys(("midstream", "rst"), SERIES[3]),
    **dict.fromkeys(("tls", "sasl"), DIM),
}
_LINED = ("new leader", "fenced", "gap", "desync")


def timeline(
    requests: Mapping[str, TimeBins], events: Sequence[TrafficEvent], span_ns: tuple[int, int], quiet_s: float
) -> Plot:
    """Plot requests per second by API, with events beneath; periods of `quiet_s` without requests are shaded."""
    first_ns, last_ns = span_ns
    rates, step_s = _rates(requests, first_ns, last_ns)
    lanes = [kind for kind in _LANES if any(each.kind == kind for each in events)]

    def draw(figure: Figure, shape: Shape) -> None:
        grid = figure.subplots(
            2 if lanes else 1, 1, sharex=True, squeeze=False, height_ratios=[6, len(lanes)] if lanes else [1]
        )
        axis = grid[0][0]
        at_s = np.arange(len(next(iter(rates.values())))) * step_s
        axis.stackplot(
            at_s, *rates.values(), labels=list(rates), colors=SERIES[: len(rates)], step="post", linewidth=0, alpha=0.85
        )
        axis.set_ylabel("requests / s")
        axis.margins(x=0)
        axis.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=2 if shape.is_narrow else 6,
            borderaxespad=0.2,
            columnspacing=1,
        )
        bare(axis)
        for begin_s, end_s in _quiet(np.sum(list(rates.values()), axis=0), step_s, quiet_s):
            for each in grid[:, 0]:
                each.axvspan(begin_s, end_s, color=DIM, alpha=0.14, linewidth=0)
        for each in events:
            if each.kind in _LINED:
                axis.axvline((each.at_ns - first_ns) / 1e9, color=_LANES[each.kind], linewidth=0.8, linestyle=":")
        if lanes:
            _lanes(grid[1][0], lanes, events, first_ns)
        grid[-1][0].set_xlabel(f"seconds since {datetime.fromtimestamp(first_ns // 10**9, UTC):%H:%M:%S} UTC")
        grid[-1][0].set_xlim(0, max((last_ns - first_ns) / 1e9, step_s))

    height = 2.6 + 0.22 * len(lanes)
    return plot("timeline", "Requests per second by API over time, with events marked beneath", draw, height)


def latencies(histograms: Mapping[str, LogHistogram]) -> Plot:
    """Plot the cumulative distribution of latency for each API."""

    def draw(figure: Figure, shape: Shape) -> None:
        axis = figure.subplots()
        for number, (name, histogram) in enumerate(histograms.items()):
            times_ns, shares = histogram.curve()
            style = "-" if number < len(SERIES) else "--"
            x_ms, y = np.concatenate([times_ns[:1], times_ns]) / 1e6, np.concatenate([[0], shares])
            axis.plot(
                x_ms, y, style, color=SERIES[number % len(SERIES)], label=name, drawstyle="steps-post", linewidth=1.4
            )
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(FuncFormatter(_milliseconds))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("from the request's last byte to the response's")
        axis.set_ylabel("share of responses")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
        axis.set_ylim(0, 1.02)
        bare(axis)
        if shape.is_narrow:
            axis.legend(loc="lower center", bbox_to_anchor=(0.45, 1), ncols=2, borderaxespad=0.2)
        else:
            axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    narrow = 3.0 + 0.16 * ((len(histograms) + 1) // 2)
    return plot("latency", "Distribution of latency by API", draw, 3.2, narrow)


def heartbeats(brokers: Mapping[str, BrokerHeartbeats], span_ns: tuple[int, int], alarm_ns: int) -> Plot:
    """Plot the longest interval between heartbeats over time, and beneath it the presence of each broker.

    Intervals over `alarm_ns` are shown as gaps.
    """
    first_ns, last_ns = span_ns
    drawn = dict(list(brokers.items())[: len(SERIES)])

    def draw(figure: Figure, shape: Shape) -> None:
        axis, lanes = figure.subplots(2, 1, sharex=True, height_ratios=[5, max(1.2, 0.7 * len(brokers))])
        for number, (name, heartbeats) in enumerate(drawn.items()):
            width_ns = heartbeats.longest.width_ns
            bins = sorted(heartbeats.longest.values.items())
            at_s = np.array([(key * width_ns + width_ns / 2 - first_ns) / 1e9 for key, _ in bins])
            values_s = np.array([value / 1e9 for _, value in bins])
            # Break the line over periods without heartbeats.
            breaks = np.flatnonzero(np.diff(at_s) > max(alarm_ns / 1e9, 4 * width_ns / 1e9)) + 1
            axis.plot(
                np.insert(at_s, breaks, np.nan),
                np.insert(values_s, breaks, np.nan),
                ".-",
                color=SERIES[number],
                label=name,
                markersize=3,
                linewidth=0.7,
            )
        axis.axhline(alarm_ns / 1e9, color=BAD, linewidth=0.8, linestyle="--")
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(EngFormatter(unit="s", sep=""))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_ylabel("between heartbeats")
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3 if shape.is_narrow else 8, borderaxespad=0.2)
        bare(axis)
        for row, heartbeats in enumerate(brokers.values()):
            _presence(lanes, row, heartbeats, first_ns, alarm_ns)
        lanes.set_yticks(range(len(brokers)), list(brokers))
        lanes.set_ylim(len(brokers) - 0.5, -0.5)
        lanes.tick_params(left=False)
        lanes.spines["left"].set_visible(False)
        lanes.set_xlabel(f"seconds since {datetime.fromtimestamp(first_ns // 10**9, UTC):%H:%M:%S} UTC")
        lanes.set_xlim(0, max((last_ns - first_ns) / 1e9, 1e-3))

    height = 2.4 + 0.25 * len(brokers)
    return plot("heartbeats", "Intervals between heartbeats over time, by broker", draw, height)


def _presence(axis: Axes, row: int, heartbeats: BrokerHeartbeats, first_ns: int, alarm_ns: int) -> None:
    begin = min(spell[0] for spell in heartbeats.spells.values())
    end = max(spell[1] for spell in heartbeats.spells.values())
    axis.barh(row, (end - begin) / 1e9, left=(begin - first_ns) / 1e9, height=0.45, color=GOOD, linewidth=0)
    for interval_ns, until_ns in heartbeats.gaps:
        if interval_ns > alarm_ns:
            left, width = (until_ns - interval_ns - first_ns) / 1e9, interval_ns / 1e9
            axis.barh(row, width, left=left, height=0.5, color=BAD, linewidth=0)


def _lanes(axis: Axes, lanes: list[str], events: Sequence[TrafficEvent], first_ns: int) -> None:
    for row, kind in enumerate(lanes):
        at_s = [(each.at_ns - first_ns) / 1e9 for each in events if each.kind == kind]
        axis.axhline(row, color=LINE, linewidth=0.6)
        axis.plot(at_s, [row] * len(at_s), "D", color=_LANES[kind], markersize=4, markeredgewidth=0, clip_on=False)
    axis.set_yticks(range(len(lanes)), [DISPLAY_NAMES.get(kind, kind) for kind in lanes])
    axis.set_ylim(len(lanes) - 0.4, -0.6)
    axis.tick_params(left=False, labelcolor=INK)
    for side in ("left", "bottom"):
        axis.spines[side].set_visible(False)


def _rates(requests: Mapping[str, TimeBins], first_ns: int, last_ns: int) -> tuple[dict[str, Rates], float]:
    """Return requests per second by name in steps of equal width, and that width."""
    wanted_s = max(0.01, (last_ns - first_ns) / 1e9 / _POINTS_MAX)
    step = next((at for at, width in enumerate(WIDTHS_S) if width >= wanted_s), len(WIDTHS_S) - 1)
    step = max([step, *(bins.step for bins in requests.values())])
    width_ns = round(WIDTHS_S[step] * 1e9)
    begin = first_ns // width_ns
    rates = {}
    for name, bins in requests.items():
        row = np.zeros(last_ns // width_ns - begin + 2)
        wide = TimeBins(bins.bins_max)
        wide.merge(bins)
        wide.widen(step)
        for key, count in wide.values.items():
            row[key - begin] = count / WIDTHS_S[step]
        rates[name] = row
    return rates, WIDTHS_S[step]


def _quiet(rate: Rates, step_s: float, quiet_s: float) -> list[tuple[float, float]]:
    """Return the periods without a request."""
    spells, begin = [], None
    for at, value in enumerate(rate[:-1].tolist()):
        if value == 0 and begin is None:
            begin = at
        if value and begin is not None:
            spells.append((begin * step_s, at * step_s))
            begin = None
    return [(begin_s, end_s) for begin_s, end_s in spells if end_s - begin_s >= quiet_s]


def _milliseconds(value: float, _: object = None) -> str:
    return f"{value * 1000:g} µs" if value < 1 else f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s"
