"""Time slices for work on many replicas, so that requests and heartbeats are served in between."""

REPLICAS_AT_ONCE = 32
"""The number of replicas that are placed, or applied, before other events have their turn."""
