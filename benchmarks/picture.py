"""A result's curves as an SVG that differs only where the figures do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PANEL_INCHES = (5.0, 4.6)


def draw(picture: dict[str, Any], path: Path) -> None:
    """One panel for each dimension: a curve for each operation, both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "mockraft", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot

    panels: dict[str, dict[str, dict[int, float]]] = picture["panels"]
    width, height = PANEL_INCHES
    figure, rows = pyplot.subplots(1, len(panels), figsize=(width * len(panels), height), sharey=True, squeeze=False)
    axes = rows[0]
    for axis, (of, curves) in zip(axes, panels.items(), strict=True):
        for name, costs in curves.items():
            axis.loglog([int(size) for size in costs], list(costs.values()), marker="o", markersize=3, label=name)
        axis.set_xlabel(of)
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].set_ylabel(picture.get("unit", "µs of CPU for one request"))
    axes[0].set_ylim(bottom=min(1, axes[0].get_ylim()[0]))
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=5, frameon=False)
    figure.suptitle(picture["title"])
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
