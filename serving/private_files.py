"""Files and directories that only their owner can read: data directories, saved states, captures, journals.

Kafka creates its log directories by the umask, so that everybody on the machine can usually read the SCRAM credentials
in them. Files of tests end up in shared folders and artefacts, so these are created with mode 0600, directories with
0700. The mode of a file that exists is not changed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


def opener(path: str, flags: int) -> int:
    """Open a file, for `open(…, opener=opener)`; a new one is private."""
    return os.open(path, flags, FILE_MODE)


def write_private(path: Path, data: bytes) -> None:
    """Write a file, private if it is new. OSError."""
    with open(path, "wb", opener=opener) as file:
        file.write(data)
