"""Removal of a folder in which a broker creates files at the same time."""

import shutil
from pathlib import Path

from mockraft.kafka.processes import wait_until


def remove_while_in_use(folder: Path) -> None:
    """Remove a folder, again while a broker puts files there. Raises TimeoutError after 10 s."""

    def is_gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    wait_until(is_gone, 60, f"{folder} to be gone")
