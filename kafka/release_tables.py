"""A Kafka release's specs and facts, copied from its own jars.

Maven fetches the jars. The JSON specs are copied byte for byte, an older release's only where they differ from the
next newer one's; the small Java programs in `java/tables` read error codes, configuration keys, feature levels and
offered API versions from Kafka's classes. SOURCE.toml lists the artifacts, and the specs of the next newer release that
a release lacks.
"""

import hashlib
import json
import os
import subprocess
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from mockraft.kafka.jars import classpath
from mockraft.wire import spec_files
from mockraft.wire.json_form import Json

JAVA_FOLDER = Path(__file__).parent / "java" / "tables"

SPECS = {
    "message": ("kafka-clients", "common/message/"),
    "metadata": ("kafka-metadata", "common/metadata/"),
    "raft": ("kafka-raft", "common/message/"),
}
"""Location of each folder's specs: artifact, and path in its jar."""

FACTS = {
    "errors.json": "ErrorCodes",
    "configs.json": "ConfigKeys",
    "features.json": "FeatureLevels",
    "api_versions.json": "ApiVersions",
}
"""Facts read from Kafka's classes: the file, and the Java program that prints it."""


class SyncError(Exception):
    """A fact of a release that could not be read, as one line for the user."""


def sync(kafka_version: str, into: Path, jars: str = "") -> Path:
    """Write `into`/`kafka_version` and return it. Raises SyncError if Maven, Java or the release is missing.

    `jars` is a class path; by default Maven fetches the release.

    Older releases there keep only the specs that differ from those of the next newer one, and older patch releases
    only the facts that differ.
    """
    try:
        jars = jars or classpath(kafka_version)
    except Exception as error:
        raise SyncError(f"Kafka {kafka_version}'s jars are not available: {error}") from error
    facts = {name: run_java(program, jars) for name, program in FACTS.items()}
    into.mkdir(parents=True, exist_ok=True)
    all_specs = {each: spec_files.read(into, each) for each in spec_files.versions(into)}
    sources = {each: tomllib.loads((into / each / spec_files.SOURCE_FILE).read_text()) for each in all_specs}
    all_specs[kafka_version], sources[kafka_version] = read_jars(jars, kafka_version)
    newer: Mapping[str, str] = {}
    for each in sorted(all_specs, key=spec_files.sort_key, reverse=True):
        write_specs(into / each, all_specs[each], newer, sources[each])
        newer = all_specs[each]
    folder = into / kafka_version
    for name, text in facts.items():
        (folder / name).write_text(text)
    _remove_repeated_facts(into)
    return folder


def _remove_repeated_facts(into: Path) -> None:
    """Remove the facts of older patch releases that are those of the next newer one of their line."""
    versions = spec_files.versions(into)
    for each, newer in zip(versions[1:], versions, strict=False):
        if spec_files.sort_key(each)[:2] != spec_files.sort_key(newer)[:2]:
            continue
        for name in FACTS:
            own, other = (into / version / name for version in (each, newer))
            if own.is_file() and own.read_bytes() == other.read_bytes():
                own.unlink()


def read_jars(jars: str, kafka_version: str) -> tuple[dict[str, str], dict[str, Json]]:
    """Return a release's specs by path, and the tables of its SOURCE.toml."""
    found: dict[str, str] = {}
    source: dict[str, Json] = {}
    for name, (artifact, prefix) in SPECS.items():
        jar = next((Path(path) for path in _paths(jars) if Path(path).name == f"{artifact}-{kafka_version}.jar"), None)
        if jar is None:
            raise SyncError(f"{artifact}-{kafka_version}.jar is not among the jars of that release")
        with zipfile.ZipFile(jar) as archive:
            entries = [each for each in archive.namelist() if each.startswith(prefix) and each.endswith(".json")]
            found |= {f"{name}/{Path(each).name}": archive.read(each).decode() for each in entries}
        source[name] = {
            "artifact": f"org.apache.kafka:{artifact}:{kafka_version}",
            "path": prefix,
            "files": len(entries),
            "sha256": hashlib.sha256(jar.read_bytes()).hexdigest(),
        }
    return found, source


def write_specs(folder: Path, own: Mapping[str, str], newer: Mapping[str, str], source: Mapping[str, Json]) -> None:
    """Write the specs of a release that differ from the next newer release's, byte for byte, and its SOURCE.toml."""
    folder.mkdir(exist_ok=True)
    for path in {*own, *spec_files.own_files(folder)}:
        file = folder / path
        if path in own and own[path] != newer.get(path):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(own[path].encode())
        else:
            file.unlink(missing_ok=True)
    for part in folder.iterdir():
        if part.is_dir() and not any(part.iterdir()):
            part.rmdir()
    absent = sorted(newer.keys() - own.keys())
    lines = [f"absent = {json.dumps(absent, indent=2)}", ""] if absent else []
    for name in SPECS:
        table = source[name]
        assert isinstance(table, dict)
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), ""]
    (folder / spec_files.SOURCE_FILE).write_text("\n".join(lines))


def _paths(jars: str) -> list[str]:
    found: list[str] = []
    for path in jars.split(os.pathsep):
        found += [str(jar) for jar in Path(path).parent.glob("*.jar")] if path.endswith("*") else [path]
    return found


def run_java(program: str, jars: str) -> str:
    """Return the output of `java/tables/<program>.java` run with Kafka on its class path. SyncError if it fails."""
    command = ["java", "-Xmx128m", "-cp", jars, str(JAVA_FOLDER / f"{program}.java")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    except FileNotFoundError as error:
        raise SyncError("java is not on the PATH (a JDK of 17 or later is needed)") from error
    except subprocess.CalledProcessError as error:
        raise SyncError(f"{program}.java failed: {error.stderr.strip()[-500:]}") from error
    return done.stdout
