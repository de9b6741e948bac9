"""Small Java programs that ask Kafka's own classes."""

import subprocess
from pathlib import Path

from mockraft.kafka.jars import KAFKA_VERSION, classpath, java

ORACLES = Path(__file__).parents[2] / "oracle_java"


def kafkas_answers(oracle: str, lines: list[str], *options: str, kafka_version: str = KAFKA_VERSION) -> list[str]:
    """The answers of Kafka's classes, one for each line."""
    command = [java(), *options, "-cp", classpath(kafka_version), str(ORACLES / oracle)]
    asked = "\n".join(lines).encode()
    printed = subprocess.run(command, input=asked, capture_output=True, check=True, timeout=200).stdout
    return printed.decode().removesuffix("\n").split("\n")
