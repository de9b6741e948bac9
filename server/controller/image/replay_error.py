"""The error for a record that does not follow from those before it."""


class ReplayError(ValueError):
    """Raised for a record that no controller would have written at its place in the log."""
