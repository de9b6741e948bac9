"""Runs the small Java programs of codegen/java with Kafka's jars, to read facts from its classes."""

import subprocess
from pathlib import Path

JAVA_FOLDER = Path(__file__).parent / "java"


class SyncError(Exception):
    """A fact of a release that could not be read, as one line for the user."""


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
