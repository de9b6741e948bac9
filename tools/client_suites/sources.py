"""Sources of client libraries with their tests, by the registries' own clients: checked once, kept in the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mockraft.kafka.jars import made_once


class SourceUnavailableError(RuntimeError):
    """A source could not be fetched or built; the message has what the tool printed."""


@dataclass(frozen=True)
class GoModule:
    """A module of the Go proxy; `checksum` is its line in a go.sum file."""

    path: str
    version: str
    checksum: str

    def fetch(self) -> Path:
        """Return the module's folder in Go's cache, which nobody may write to."""
        printed = _run([go(), "mod", "download", "-json", f"{self.path}@{self.version}"], Path.home())
        found = json.loads(printed)
        if found["Sum"] != self.checksum:
            raise SourceUnavailableError(f"{self.path} {self.version} has the checksum {found['Sum']}")
        return Path(found["Dir"])

    def tests(self, package: str) -> Path:
        """Compile the tests of a package (".", "pkg/kgo") once and return the program."""
        root = self.fetch()

        def build(folder: Path) -> None:
            # Some modules are not tidy by the rules of a newer Go, which then wants to write their go.mod.
            for name in ("go.mod", "go.sum"):
                shutil.copyfile(root / name, folder / name)
            module = ["-mod=mod", f"-modfile={folder}/go.mod"]
            _run([go(), "test", *module, "-c", "-o", f"{folder}/program", f"./{package}"], root)

        return _made_whole(self._name(package), build) / "program"

    def _name(self, package: str) -> str:
        return f"{self.path}/{package}@{self.version}".replace("/.@", "@").replace("/", "-")


@dataclass(frozen=True)
class Sdist:
    """A source distribution of PyPI; `sha256` is its hash there. `added` are files that it lacks, by path."""

    name: str
    version: str
    sha256: str
    added: Mapping[str, str]

    def fetch(self) -> Path:
        """Return the unpacked folder, which all runs share."""

        def unpack(target: Path) -> None:
            with TemporaryDirectory() as name:
                folder = Path(name)
                # The environment of the tests may have no pip.
                venv.create(folder / "venv", with_pip=True)
                wanted = folder / "requirements.txt"
                wanted.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n")
                options = ["--no-deps", "--no-binary=:all:", "--require-hashes", "-d", name]
                _run([f"{name}/venv/bin/python", "-m", "pip", "download", *options, "-r", str(wanted)], folder)
                (archive,) = folder.glob("*.tar.gz")
                with tarfile.open(archive) as packed:
                    packed.extractall(folder, filter="data")
                shutil.copytree(folder / archive.name.removesuffix(".tar.gz"), target, dirs_exist_ok=True)
            for path, text in self.added.items():
                target.joinpath(path).write_text(text)

        return _made_whole(f"{self.name}-{self.version}", unpack)


def go() -> str:
    """Return the path of the go command. Raises SourceUnavailableError."""
    found = shutil.which("go")
    if found is None:
        raise SourceUnavailableError("go was not found: install golang-go")
    return found


def _made_whole(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache; a half-made one is not left."""

    def make_beside(target: Path) -> None:
        with TemporaryDirectory(dir=target.parent) as folder:
            make(Path(folder))
            Path(folder).rename(target)
            Path(folder).mkdir()

    return made_once(f"client-suites/{name}", make_beside)


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SourceUnavailableError(f"{' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout
