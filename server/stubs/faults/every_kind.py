"""Every kind of fault; imported when the first fault is made."""

from __future__ import annotations

from mockraft.server.stubs.faults.byte_kinds import BYTE_KINDS
from mockraft.server.stubs.faults.kinds import Kind
from mockraft.server.stubs.faults.presets import PRESET_KINDS

KINDS: dict[str, Kind] = {kind.name: kind for kind in (*BYTE_KINDS, *PRESET_KINDS)}
"""All kinds by name."""
