"""Draw the curves of a result as SVG; equal figures give equal files."""

from __future__ import annotations

from pathlib import Path

from result import Picture

PANEL_INCHES = (5.0, 4.6)


def draw(picture: Picture, path: Path) -> None:
    """Draw one panel for each dimension with a curve for each operation; both axes are logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "mockraft", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot

    panels = picture.panels
    width, height = PANEL_INCHES
    figure, rows = pyplot.subplots(1, len(panels), figsize=(width * len(panels), height), sharey=True, squeeze=False)
    axes = rows[0]
    for axis, (of, curves) in zip(axes, panels.items(), strict=True):
        for name, costs in curves.items():
            axis.loglog([int(size) for size in costs], list(costs.values()), marker="o", markersize=3, label=name)
        axis.set_xlabel(of)
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].set_ylabel(picture.unit)
    axes[0].set_ylim(bottom=min(1, axes[0].get_ylim()[0]))
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=5, frameon=False)
    figure.suptitle(picture.title)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
