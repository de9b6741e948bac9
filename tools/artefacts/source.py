"""The source of a build: the files that git knows, without what the machine adds to them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


def commit_time_s(root: Path) -> int:
    """Return SOURCE_DATE_EPOCH, or the time of the last commit, in seconds since 1970."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git(root, "log", "-1", "--format=%ct"))


def uncommitted(root: Path) -> list[str]:
    """Return the names of files that differ from the last commit."""
    return [line[3:] for line in _git(root, "status", "--porcelain").splitlines()]


def copy_source(root: Path, target: Path, epoch_s: int) -> None:
    """Copy the files that git knows or would add, with one modification time and the modes 644 and 755."""
    for name in _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        source, copy = root / name, target / name
        if not source.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        copy.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    for path in (target, *target.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (epoch_s, epoch_s))
