"""Every kind of fault; imported when the first fault is made."""

from __future__ import annotations

from mockraft.server.stubs.faults.fault import Kind
from mockraft.server.stubs.faults.preset import Preset
from mockraft.server.stubs.faults.presets_brokers import BROKER_PRESETS
from mockraft.server.stubs.faults.presets_log import LOG_PRESETS
from mockraft.server.stubs.faults.presets_quorum import QUORUM_PRESETS
from mockraft.server.stubs.faults.toxics import BYTE_KINDS

PRESET_KINDS: tuple[Preset, ...] = (*QUORUM_PRESETS, *BROKER_PRESETS, *LOG_PRESETS)
"""Presets: named misbehaviours of a controller, each with a real broker's reaction, as in the documentation."""
KINDS: dict[str, Kind] = {kind.name: kind for kind in (*BYTE_KINDS, *PRESET_KINDS)}
"""All kinds by name."""
