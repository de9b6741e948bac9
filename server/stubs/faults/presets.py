"""Presets: named misbehaviours of a controller, each with a real broker's reaction."""

from __future__ import annotations

from mockraft.server.stubs.faults.preset import Preset
from mockraft.server.stubs.faults.presets_brokers import BROKER_PRESETS
from mockraft.server.stubs.faults.presets_log import LOG_PRESETS
from mockraft.server.stubs.faults.presets_quorum import QUORUM_PRESETS

PRESET_KINDS: tuple[Preset, ...] = (*QUORUM_PRESETS, *BROKER_PRESETS, *LOG_PRESETS)
"""All presets, in the order of the documentation."""
