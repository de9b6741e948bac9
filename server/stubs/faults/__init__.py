"""Faults by name that are switched on and off: byte toxics of connections, presets of the controller, plans of both."""
