"""A run of `mockraft fleet` as a picture: brokers, heartbeats and latencies over time, and what was done to whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

SAME_SPELL_S = 3
INCHES = (9.0, 7.5)
COLOURS = {"registered": "#888888", "unfenced": "#2a7f3f", "fenced": "#c0392b"}


def draw(summary: dict[str, Any], path: Path) -> None:
    """Write the picture of a summary, in the format of the path's suffix."""
    with matplotlib.rc_context({"svg.hashsalt": "mockraft", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=INCHES)
        brokers, rate, latency = figure.subplots(3, 1, sharex=True)
        samples = summary["samples"]
        at_s = [sample["at_s"] for sample in samples]
        for name, colour in COLOURS.items():
            brokers.plot(at_s, [sample[name] for sample in samples], color=colour, label=name)
        brokers.set_ylabel("brokers")
        brokers.set_ylim(0, 1.08 * summary["brokers"])
        brokers.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
        rate.plot(at_s, [sample["heartbeats_per_s"] for sample in samples], color="#1f4e79")
        rate.set_ylabel("heartbeats answered / s")
        rate.set_ylim(bottom=0)
        _latencies(latency, samples)
        for axis in (brokers, rate, latency):
            axis.grid(visible=True, alpha=0.3)
            for number, spell in enumerate(_spells(summary["actions"])):
                axis.axvline(spell.from_s, color="#b8860b", linewidth=0.8, linestyle="--", alpha=0.6)
                axis.axvspan(spell.from_s, spell.to_s, color="#b8860b", alpha=0.12, linewidth=1)
                if axis is brokers:
                    _label(axis, number, spell)
        latency.set_xlabel("seconds since the start")
        figure.suptitle(f"{summary['brokers']:,} simulated brokers")
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _latencies(axis: Axes, samples: list[dict[str, float]]) -> None:
    measured = [sample for sample in samples if sample["p50_ms"] is not None]
    at_s = [sample["at_s"] for sample in measured]
    axis.plot(at_s, [sample["p50_ms"] for sample in measured], color="#1f4e79", label="p50")
    axis.plot(at_s, [sample["p99_ms"] for sample in measured], color="#c0392b", label="p99")
    axis.set_ylabel("heartbeat latency, ms")
    if measured:
        axis.set_yscale("log")
        axis.legend(loc="upper right", frameon=False)


class _Spell(NamedTuple):
    """The same was done from this second to that one, to so many brokers in all."""

    act: str
    from_s: int
    to_s: int
    brokers: int


def _spells(actions: list[dict[str, Any]]) -> list[_Spell]:
    spells: list[_Spell] = []
    for act in dict.fromkeys(action["act"] for action in actions):
        for action in (each for each in actions if each["act"] == act):
            last = spells[-1] if spells else None
            if last is not None and last.act == act and action["at_s"] - last.to_s <= SAME_SPELL_S:
                spells[-1] = last._replace(to_s=action["at_s"], brokers=last.brokers + action["brokers"])
            else:
                spells.append(_Spell(act, action["at_s"], action["at_s"], action["brokers"]))
    return sorted(spells, key=lambda spell: spell.from_s)


def _label(axis: Axes, number: int, spell: _Spell) -> None:
    """Draw the actions at the time they begin; neighbours get different heights."""
    axis.annotate(
        f"{spell.act} {spell.brokers:,}",
        (spell.from_s, 0.12 + 0.1 * (number % 6)),
        xycoords=("data", "axes fraction"),
        xytext=(2, 0),
        textcoords="offset points",
        fontsize=8,
        color="#7a5a00",
    )
