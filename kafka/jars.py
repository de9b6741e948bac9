"""Kafka's own jars, fetched once by Maven into a cache outside the source tree."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.sax.saxutils import escape

from mockraft.releases import release

JAVA_VERSION_MIN = 17

KAFKA_VERSION = release().kafka_version
"""The Kafka version that runs if none is given."""


# slf4j-simple must be 1.7.36: with a 2.x binding next to Kafka's slf4j-api 1.7.36 nothing is logged at all.
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>mockraft</groupId><artifactId>kafka-jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"""
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_OPTIONAL_ARTIFACTS = ("kafka-tools", "kafka-shell")
LOGGING_JARS = ("slf4j-simple-1.7.36.jar", "slf4j-api-1.7.36.jar")
"""The jars of the logger that every release runs with."""

VERSION = r"\d+\.\d+\.\d+(?:-rc\d+|-SNAPSHOT)?"
"""Pattern of the version of a release, a candidate, or what was built from trunk."""


class Artifact(NamedTuple):
    """An artifact on Maven; with `alone`, without the artifacts that it needs."""

    group: str
    name: str
    version: str
    classifier: str = ""
    alone: bool = False

    def dependency(self) -> str:
        """Return its element of a POM's dependencies."""
        classifier = f"<classifier>{escape(self.classifier)}</classifier>" if self.classifier else ""
        named = map(escape, (self.group, self.name, self.version))
        return _DEPENDENCY.format(*named, classifier + _ALONE * self.alone)


LOGGING = tuple(Artifact("org.slf4j", name, "1.7.36") for name in ("slf4j-simple", "slf4j-api"))
"""A logger that writes to stderr."""


class KafkaUnavailableError(RuntimeError):
    """Real Kafka cannot be run here; the message is one line that names what is missing."""


def cache_directory() -> Path:
    """The folder that keeps the jars: ``MOCKRAFT_CACHE``, or ``mockraft`` below the user's cache folder."""
    chosen = os.environ.get("MOCKRAFT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mockraft"


def java() -> str:
    """The path of a Java 17+ launcher (``JAVA_HOME`` first, then ``PATH``). Raises KafkaUnavailableError."""
    return _launcher()[0]


def java_release() -> str:
    """The release of that Java, as in ``17.0.15``; errors are those of `java`."""
    return _launcher()[1]


@lru_cache(maxsize=1)
def _launcher() -> tuple[str, str]:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        raise KafkaUnavailableError(f"java was not found: real Kafka needs Java {JAVA_VERSION_MIN} or newer")
    banner = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "((\d+)[^"]*)"', banner)
    if version is None or int(version[2]) < JAVA_VERSION_MIN:
        version_line = banner.splitlines()[0] if banner else "java -version printed nothing"
        raise KafkaUnavailableError(f"real Kafka needs Java {JAVA_VERSION_MIN} or newer, but: {version_line}")
    return found, version[1]


def maven() -> str:
    """The path of ``mvn``. KafkaUnavailableError when it is not on ``PATH``."""
    found = shutil.which("mvn")
    if found is None:
        raise KafkaUnavailableError("mvn was not found: Kafka's jars are fetched by Maven")
    return found


def jars_directory(version: str, progress: Callable[[str], None] | None = None) -> Path:
    """The folder with every jar of a release (``4.1.2``, ``4.5.0-rc0``); fetched by Maven if it is not in the cache.

    ``progress`` gets one line for each file that arrives. KafkaUnavailableError when Maven is missing or fails.
    """
    if not re.fullmatch(VERSION, version):
        raise KafkaUnavailableError(f"{version!r} is not a Kafka release: give it as in {KAFKA_VERSION}")
    return made_once(f"kafka-{version}", lambda target: _fetch(version, target, progress or (lambda line: None)))


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache; `make` makes it if it is not there, in one process at a time."""
    target = cache_directory() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one(target.parent / f"{target.name}.lock"):
        if not target.is_dir():
            make(target)
    return target


def classpath(version: str) -> str:
    """The Java class path of one Kafka release: its server, its tools and a logger that writes to stderr.

    Raises what `jars_directory` does.
    """
    jars = jars_directory(version)
    # slf4j takes the first binding it meets; releases before 4.0 bring one of their own.
    return os.pathsep.join([*(str(jars / name) for name in LOGGING_JARS), str(jars / "*")])


def _fetch(version: str, target: Path, progress: Callable[[str], None]) -> None:
    wanted = [*LOGGING, *(Artifact("org.apache.kafka", name, version) for name in ("kafka_2.13", *_OPTIONAL_ARTIFACTS))]
    with TemporaryDirectory(prefix=f"kafka-{version}-", dir=target.parent) as folder:
        jars = Path(folder, "jars")
        errors = copy_artifacts(wanted, Path(folder), jars, progress)
        # Not every release has its tools on Maven.
        absent = [name for name in _OPTIONAL_ARTIFACTS if f"org.apache.kafka:{name}:jar:{version}" in errors]
        if absent:
            errors = copy_artifacts([each for each in wanted if each.name not in absent], Path(folder), jars, progress)
        if re.search(rf"kafka_2\.13:jar:{re.escape(version)} was not found|Could not find artifact .*kafka_2", errors):
            raise KafkaUnavailableError(f"Maven has no Kafka {version}")
        if errors or not all((jars / name).is_file() for name in LOGGING_JARS):
            raise KafkaUnavailableError(f"Maven could not fetch Kafka {version}: {errors or 'it printed nothing'}")
        jars.rename(target)


def copy_artifacts(wanted: Iterable[Artifact], folder: Path, jars: Path, progress: Callable[[str], None]) -> str:
    """Let Maven copy artifacts and what they need into `jars`; return its first line of error, or an empty text."""
    pom = folder / "pom.xml"
    pom.write_text(_POM.format(dependencies="".join(each.dependency() for each in wanted)))
    command = [maven(), "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    command.append(f"-DoutputDirectory={jars}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line.strip())
            if arrived := re.search(r"Downloaded from .*/([^/ ]+\.jar) \(([^)]*)\)", line):
                progress(f"{arrived[1]} ({arrived[2]})")
    if process.returncode == 0:
        return ""
    return next((line for line in printed if "ERROR" in line), "".join(printed[-1:]))


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """One process at a time in here, by a lock on this file."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
