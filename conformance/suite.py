"""All cases, area by area."""

from __future__ import annotations

from importlib import import_module

from mockraft.conformance.case import CASES, Case

AREAS = (
    *("listener", "registration", "heartbeats", "sessions"),
    *("topics", "topic deletion", "partitions", "placement", "isr", "elections", "reassignments"),
    *("directories", "cordoning", "configs", "config values", "described configs", "features", "quotas"),
    *("scram", "tokens", "acls", "producer ids"),
    *("log", "quorum", "envelope", "cluster", "robustness"),
)
"""The areas in their order; each is a module of `mockraft.conformance.cases`, with underscores for spaces."""


def all_cases() -> list[Case]:
    """Return every case, in the order of the areas."""
    for area in AREAS:
        import_module(f"mockraft.conformance.cases.{area.replace(' ', '_')}")
    return sorted(CASES, key=lambda case: AREAS.index(case.area))
