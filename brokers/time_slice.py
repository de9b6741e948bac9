"""Time slices for work on many replicas, so that requests and heartbeats are served in between."""

PIECES = 32
"""The number of replicas that are placed, or applied, before other events have their turn."""
