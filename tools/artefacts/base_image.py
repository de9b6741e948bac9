"""Base images: one of a registry, or Debian with Python made by debootstrap where no registry answers."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from mockraft.kafka.jars import cache_directory

from .build import NotAtHandError

PUBLISHED = "python:3.13-slim"
DEBIAN = "mockraft-debian-base"
CA_CERTIFICATES = Path("/usr/local/share/ca-certificates")
_PACKAGES = "python3,python3-venv,ca-certificates"
_LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man")
# What holds the clock, or numbers of this file system.
_CHANGING = ("var/log", "var/cache/ldconfig/aux-cache", "var/cache/debconf", "etc/machine-id")


def default() -> str:
    """Return the published base image, or Debian's if no registry answers; NotAtHandError if neither can be had."""
    for command in (("image", "inspect", PUBLISHED), ("pull", "--quiet", PUBLISHED)):
        if subprocess.run(["docker", *command], capture_output=True, check=False).returncode == 0:
            return PUBLISHED
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise NotAtHandError(f"{PUBLISHED} cannot be pulled: name a base image with BASE=, or install debootstrap")
    return debian()


def debian() -> str:
    """Return the name of a base image of Debian 12 and its Python, as root; the archive is made once and kept.

    It has this machine's own certificate authorities, so that pip reaches the package index from where it runs.
    """
    if _run("docker", "images", "--quiet", DEBIAN).strip():
        return DEBIAN
    certificates = sorted(CA_CERTIFICATES.glob("*.crt"))
    key = hashlib.sha256(b"".join([Path(__file__).read_bytes(), *(each.read_bytes() for each in certificates)]))
    archive = cache_directory() / f"debian-base-image-{key.hexdigest()[:12]}.tar"
    if not archive.is_file():
        with tempfile.TemporaryDirectory(prefix="mockraft-base-") as folder:
            archive.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(_bootstrapped(Path(folder, "root"), certificates), archive)
    _run("docker", "import", "--change", "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt", archive, DEBIAN)
    return DEBIAN


def _bootstrapped(root: Path, certificates: list[Path]) -> Path:
    start_s = int(time.time())
    _run("debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", root)
    for certificate in certificates:
        shutil.copy(certificate, root / CA_CERTIFICATES.relative_to("/"))
    _run("chroot", root, "update-ca-certificates")
    for name in (*_LEFT_OUT, *_CHANGING):
        if (root / name).is_dir():
            shutil.rmtree(root / name)
        else:
            (root / name).unlink(missing_ok=True)
    # Files of the packages keep their times, which compiled Python files name.
    _run("find", root, "-newermt", f"@{start_s - 1}", "-exec", "touch", "--no-dereference", "--date=@0", "{}", "+")
    archive = root.with_suffix(".tar")
    _run("tar", "-C", root, "--sort=name", "--numeric-owner", "-cf", archive, ".")
    return archive


def _run(*command: str | Path) -> str:
    """Run a program and return its output; CalledProcessError has it in `stdout`."""
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=600
    ).stdout
