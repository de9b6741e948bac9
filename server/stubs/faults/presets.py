"""Faults of the controller by name."""

from mockraft.server.stubs.faults.kinds import Kind

PRESET_KINDS: tuple[Kind, ...] = ()
