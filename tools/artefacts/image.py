"""The container image, as an archive for `docker load` (or `podman load`).

Docker writes the clock into an image: into its configuration, and into each layer as the times of files. The archive
is written anew with the build's time instead. Layers of the base image are left as they are.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime

from . import base_image
from .build import Build
from .engine import engine

OWN_LAYERS = 1
"""Layers that the last stage of the Dockerfile adds to its base."""
_KEPT = ("architecture", "config", "history", "os", "rootfs", "variant")


def build(build: Build) -> None:
    """Build the image of the source on the base image and write its archive; NotAtHandError without an engine."""
    with engine():
        base = build.base_image or base_image.default()
        print(f"image     on {base}", flush=True)
        name = build.name.replace("-", ":", 1)
        options = ("--no-cache", "--network", "host", "--build-arg", f"BASE={base}")
        build.run("docker", "build", *options, "--file", "docker/Dockerfile", "--tag", name, ".")
        saved = build.folder / "image.tar"
        build.run("docker", "save", "--output", saved, name)
    with tarfile.open(saved) as archive, tarfile.open(build.target / f"{build.name}-image.tar", "w") as written:
        _write_again(archive, written, build.epoch_s)


def _write_again(archive: tarfile.TarFile, written: tarfile.TarFile, epoch_s: int) -> None:
    (manifest,) = json.loads(_read(archive, "manifest.json"))
    layers = [_uncompressed(_read(archive, name)) for name in manifest["Layers"]]
    layers[-OWN_LAYERS:] = [_with_one_time(layer, epoch_s) for layer in layers[-OWN_LAYERS:]]
    names = [hashlib.sha256(layer).hexdigest() for layer in layers]

    config = json.loads(_read(archive, manifest["Config"]))
    config = {key: config[key] for key in _KEPT if key in config}
    config["created"] = datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config["rootfs"]["diff_ids"] = [f"sha256:{name}" for name in names]
    # The number of the image before the last step, in which the clock is too.
    config["config"].pop("Image", None)
    for step in config["history"]:
        step["created"] = config["created"]
    content = json.dumps(config, sort_keys=True).encode()

    manifest["Config"] = f"{hashlib.sha256(content).hexdigest()}.json"
    manifest["Layers"] = [f"{name}.tar" for name in names]
    files = dict(zip(manifest["Layers"], layers, strict=True)) | {manifest["Config"]: content}
    files["manifest.json"] = json.dumps([{key: manifest[key] for key in ("Config", "RepoTags", "Layers")}]).encode()
    for name, data in files.items():
        member = tarfile.TarInfo(name)
        member.size, member.mtime = len(data), epoch_s
        written.addfile(member, io.BytesIO(data))


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, name
    return file.read()


def _uncompressed(layer: bytes) -> bytes:
    """Return a layer as a tar file: Docker's containerd store saves it compressed."""
    return gzip.decompress(layer) if layer.startswith(b"\x1f\x8b") else layer


def _with_one_time(layer: bytes, epoch_s: int) -> bytes:
    """Return a layer whose files have the build's time, sorted, with links after what they lead to."""
    target = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(layer)) as read, tarfile.open(fileobj=target, mode="w") as written:
        for member in sorted(read, key=lambda each: (each.islnk(), each.name)):
            member.mtime = epoch_s
            member.pax_headers = {}
            written.addfile(member, read.extractfile(member) if member.isreg() else None)
    return target.getvalue()
