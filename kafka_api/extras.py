"""Extras of mockraft, which install the packages that are not needed everywhere."""


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, for a message about a missing package."""
    return f"pip install 'mockraft[{extra}]' (in a clone: '.[{extra}]')"
