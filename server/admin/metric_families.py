"""Builders of Prometheus metric families from counts and lookups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from mockraft.server.admin.request_counts import BUCKETS_US, RequestCounts
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

T = TypeVar("T")

Samples = Iterable[tuple[Sequence[str], float]]
"""Values by their labels."""


def counter(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return a counter; Prometheus shows it as `<name>_total`."""
    metric = CounterMetricFamily(name, about, labels=labels)
    for values, count in samples:
        metric.add_metric(values, count)
    return metric


def gauge(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return a gauge with a value for each list of label values in `samples`."""
    metric = GaugeMetricFamily(name, about, labels=labels)
    for values, value in samples:
        metric.add_metric(values, value)
    return metric


def counters(nodes: Mapping[str, T], prefix: str, *wanted: tuple[str, str, Callable[[T], float]]) -> Iterator[Metric]:
    """Yield counters (name after the prefix, description, how to look it up) of every node."""
    for name, about, value in wanted:
        yield counter(prefix + name, about, ("node",), [((node,), value(each)) for node, each in nodes.items()])


def gauges(nodes: Mapping[str, T], prefix: str, *wanted: tuple[str, str, Callable[[T], float]]) -> Iterator[Metric]:
    """Yield gauges, given likewise."""
    for name, about, value in wanted:
        yield gauge(prefix + name, about, ("node",), [((node,), value(each)) for node, each in nodes.items()])


def latencies(counts: Mapping[str, RequestCounts]) -> Metric:
    """Return the latency histogram of all nodes and APIs, in seconds."""
    metric = HistogramMetricFamily(
        "mockraft_request_latency_seconds",
        "Time from a request to its answer, by the controller's clock; a Fetch waits for records.",
        labels=("node", "api"),
    )
    bounds = [*(f"{us / 1e6:g}" for us in BUCKETS_US), "+Inf"]
    for node, each in counts.items():
        for api, in_buckets in sorted(each.latencies.items()):
            buckets, total = [], 0
            for bound, count in zip(bounds, in_buckets, strict=True):
                total += count
                buckets.append((bound, float(total)))
            metric.add_metric((node, api), buckets, each.elapsed_us[api] / 1e6)
    return metric
