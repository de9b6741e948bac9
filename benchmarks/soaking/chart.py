"""Draw a soak as SVG: memory and log, then latencies; equal samples give equal files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from soaking.samples import Sample

INCHES = (8.0, 4.2)


def draw(samples: Sequence[Sample], path: Path) -> None:
    """Draw two panels over the minutes of the soak."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "mockraft", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot

    minutes = [each.at_min for each in samples]
    figure, (sizes, latencies) = pyplot.subplots(2, 1, figsize=INCHES, sharex=True)
    sizes.plot(minutes, [each.memory_mib for each in samples], label="resident memory, MiB")
    sizes.plot(minutes, [1000 * each.log_mb for each in samples], label="log, kB")
    sizes.plot(minutes, [each.files for each in samples], label="open files")
    latencies.semilogy(minutes, [each.p99_ms for each in samples], label="p99 of heartbeats, ms")
    latencies.semilogy(minutes, [each.p50_ms for each in samples], label="p50 of heartbeats, ms")
    latencies.semilogy(minutes, [each.peer_p99_ms for each in samples], label="p99 of a peer that answers at once, ms")
    for axis in (sizes, latencies):
        axis.grid(visible=True, which="major", alpha=0.3)
        axis.legend(loc="lower left", ncols=3, frameon=False)
    sizes.set_ylim(bottom=0)
    latencies.set_ylim(bottom=0.01)
    latencies.set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
