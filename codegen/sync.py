"""`python -m mockraft.codegen sync`: copy a Kafka release's specs and facts from its own jars.

Maven fetches the jars. The JSON specs are copied byte for byte; the small Java programs in codegen/java read error
codes, configuration keys and feature levels from Kafka's classes. SOURCE.toml lists the artifact of each.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from mockraft.kafka.jars import classpath

JAVA_FOLDER = Path(__file__).parent / "java"

SPEC_FOLDERS = {
    "message": ("kafka-clients", "common/message/"),
    "metadata": ("kafka-metadata", "common/metadata/"),
    "raft": ("kafka-raft", "common/message/"),
}
"""Location of each folder's specs: artifact, and path in its jar."""

FACTS = {"errors.json": "ErrorCodes", "configs.json": "ConfigKeys", "features.json": "FeatureLevels"}
"""Facts read from Kafka's classes: the file, and the Java program that prints it."""


class SyncError(Exception):
    """A fact of a release that could not be read, as one line for the user."""


def main(arguments: list[str]) -> int:
    """Run the subcommand; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mockraft.codegen sync",
        description="Fetch a Kafka release's message specs and error codes through Maven (Java 17+ and mvn needed).",
        epilog="then: python -m mockraft.codegen compare 4.3.1 X, and see CONTRIBUTING.md for the rest of the way",
    )
    parser.add_argument("--kafka-version", required=True, metavar="X", help="a release on Maven, such as 4.3.1")
    parser.add_argument("--into", type=Path, default=Path("schemas_json"), help="the folder of releases (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        folder = sync(options.kafka_version, options.into)
    except SyncError as error:
        print(f"sync: {error}", file=sys.stderr)
        return 1
    print(f"{folder}: {sum(1 for _ in folder.rglob('*.json'))} files from Kafka {options.kafka_version}")
    return 0


def sync(kafka_version: str, into: Path) -> Path:
    """Write `into`/`kafka_version` and return it. Raises SyncError if Maven, Java or the release is missing."""
    try:
        jars = classpath(kafka_version)
    except Exception as error:
        raise SyncError(f"Kafka {kafka_version}'s jars are not available: {error}") from error
    folder = into / kafka_version
    sources = [copy_specs(jars, kafka_version, name, folder) for name in SPEC_FOLDERS]
    (folder / "SOURCE.toml").write_text("\n".join(sources))
    for name, program in FACTS.items():
        (folder / name).write_text(run_java(program, jars))
    return folder


def copy_specs(jars: str, kafka_version: str, name: str, folder: Path) -> str:
    """Copy one artifact's JSON specs to `folder`/`name`; return its table for SOURCE.toml."""
    artifact, prefix = SPEC_FOLDERS[name]
    jar = next((Path(path) for path in _paths(jars) if Path(path).name == f"{artifact}-{kafka_version}.jar"), None)
    if jar is None:
        raise SyncError(f"{artifact}-{kafka_version}.jar is not among the jars of that release")
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    for stale in target.glob("*.json"):
        stale.unlink()
    with zipfile.ZipFile(jar) as archive:
        specs = [entry for entry in archive.namelist() if entry.startswith(prefix) and entry.endswith(".json")]
        for entry in specs:
            (target / Path(entry).name).write_bytes(archive.read(entry))
    sha256 = hashlib.sha256(jar.read_bytes()).hexdigest()
    return (
        f'[{name}]\nartifact = "org.apache.kafka:{artifact}:{kafka_version}"\npath = "{prefix}"\n'
        f'files = {len(specs)}\nsha256 = "{sha256}"\n'
    )


def _paths(jars: str) -> list[str]:
    found: list[str] = []
    for path in jars.split(os.pathsep):
        found += [str(jar) for jar in Path(path).parent.glob("*.jar")] if path.endswith("*") else [path]
    return found


def run_java(program: str, jars: str) -> str:
    """Return the output of `codegen/java/<program>.java` run with Kafka on its class path. SyncError if it fails."""
    command = ["java", "-Xmx128m", "-cp", jars, str(JAVA_FOLDER / f"{program}.java")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    except FileNotFoundError as error:
        raise SyncError("java is not on the PATH (a JDK of 17 or later is needed)") from error
    except subprocess.CalledProcessError as error:
        raise SyncError(f"{program}.java failed: {error.stderr.strip()[-500:]}") from error
    return done.stdout
