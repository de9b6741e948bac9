"""Archives whose bytes depend on names and contents only."""

from __future__ import annotations

import gzip
import lzma
import tarfile
from pathlib import Path


def write_tar(folder: Path, target: Path, epoch_s: int) -> None:
    """Archive a folder under its name: files sorted, owned by root, with one time and the modes 644 and 755.

    It is compressed by xz, whose window is 64 MB, if the target is a .tar.xz, and by gzip otherwise.
    """
    with (
        target.open("wb") as file,
        lzma.LZMAFile(file, "wb", preset=9)
        if target.suffix == ".xz"
        else gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted((folder, *folder.rglob("*"))):
            member = archive.gettarinfo(path, path.relative_to(folder.parent).as_posix())
            member.mtime = epoch_s
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            if member.isfile():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            else:
                archive.addfile(member)
