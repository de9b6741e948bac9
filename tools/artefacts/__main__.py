"""`make dist`: everything that a release consists of, in build/dist; the same source gives the same bytes.

The parts are built from a copy of the files that git knows, which has one modification time, the last commit's
(or SOURCE_DATE_EPOCH), and modes that no umask changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from . import image, packages, sbom, site, vectors
from .build import Build, NotAtHandError
from .source import commit_time_s, copy_source, uncommitted

ROOT = Path(__file__).parents[2]
PARTS: dict[str, Callable[[Build], None]] = {
    "packages": packages.build,
    "site": site.build,
    "sbom": sbom.build,
    "vectors": vectors.build,
    "image": image.build,
}
EPILOG = """\
parts (all, if none is named):
  packages   wheels and sdists of mockraft, pytest-mockraft and mockraft-speed, checked by twine; mockraft-speed has a
             wheel for each Python from 3.11 that is at hand, for manylinux if auditwheel finds that it is one
  site       the documentation
  sbom       what the wheel and its extras need (CycloneDX JSON)
  vectors    what codecs are judged by, made by Kafka's classes; needs Java 17, and Maven for the jars of each release
  image      the container image; needs a Docker engine (root starts dockerd if none answers), and BASE is its base
             image (default: python:3.13-slim, or where no registry answers, Debian by debootstrap)

exit codes:
  0 all were built; 1 one could not be built, or under CI=true a tool is missing

examples:
  make dist
  make dist BASE=registry.example/python:3.13-slim
  make dist ARGS='packages --out /tmp/dist'
  cd build/dist && sha256sum --check SHA256SUMS
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Build the parts, with a line for each file, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="make dist", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, default=Path("build/dist"), metavar="DIR", help="default: build/dist")
    parser.add_argument("--base", metavar="IMAGE", help="BASE; default: see below")
    options = parser.parse_args(argv)
    if unknown := sorted({*options.parts} - PARTS.keys()):
        parser.error(f"{unknown[0]!r} is no part; the parts are {', '.join(PARTS)}")
    if options.out.exists():
        if any(options.out.iterdir()) and not (options.out / "SHA256SUMS").is_file():
            parser.error(f"{options.out} has other files: name a folder that is empty, new, or of an earlier make dist")
        shutil.rmtree(options.out)
    options.out.mkdir(parents=True)
    (options.out / "SHA256SUMS").touch()
    if changed := uncommitted(ROOT):
        print(f"warning: built with uncommitted changes: {', '.join(changed[:5])}{' …' if changed[5:] else ''}")
    with tempfile.TemporaryDirectory(prefix="mockraft-dist-") as folder:
        epoch_s = commit_time_s(ROOT)
        copy_source(ROOT, Path(folder, "source"), epoch_s)
        built = Build(Path(folder), options.out.resolve(), epoch_s, options.base)
        return _build(built, options.parts or list(PARTS))


def _build(build: Build, parts: Sequence[str]) -> int:
    code = 0
    sums_file = build.target / "SHA256SUMS"
    shown = {sums_file}
    for part in parts:
        try:
            PARTS[part](build)
        except NotAtHandError as missing:
            print(f"{part:<9} left out: {missing}", flush=True)
            code |= os.environ.get("CI") == "true"
        except subprocess.CalledProcessError as error:
            print(f"{part:<9} failed: {error}\n{error.stdout}", file=sys.stderr)
            code = 1
        for path in sorted({*build.target.iterdir()} - shown):
            print(f"{part:<9} {path.name} ({path.stat().st_size:,} bytes)", flush=True)
            shown.add(path)
    built = sorted(shown - {sums_file})
    sums_file.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in built))
    return code


if __name__ == "__main__":
    sys.exit(main())
