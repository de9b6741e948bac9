"""A folder of jars that were built from Kafka's sources, as a release in a cache of jars."""

from __future__ import annotations

import re
from pathlib import Path

from mockraft.kafka.jars import LOGGING_JARS, VERSION, KafkaUnavailableError, jars_directory
from mockraft.releases import NEWEST

_NEEDED = ("kafka-clients", "kafka-metadata", "kafka-raft", "kafka_2.13")


def version_of(folder: Path) -> str:
    """Return the version of the jars in a folder. Raises KafkaUnavailableError if they are not those of one release."""
    names = [path.name for path in folder.glob("*.jar")]
    found = sorted({match[1] for name in names if (match := re.fullmatch(f"kafka-clients-({VERSION})\\.jar", name))})
    if len(found) != 1:
        what = f"has kafka-clients of {' and '.join(found)}" if found else "has no kafka-clients-VERSION.jar"
        raise KafkaUnavailableError(
            f"{folder} {what}: name the libs folder of one distribution (./gradlew releaseTarGz makes it in "
            "core/build/distributions)"
        )
    absent = [name for name in _NEEDED if f"{name}-{found[0]}.jar" not in names]
    if absent:
        raise KafkaUnavailableError(f"{folder} lacks {', '.join(f'{name}-{found[0]}.jar' for name in absent)}")
    return found[0]


def link_into(cache: Path, folder: Path, version: str) -> None:
    """Link the jars into a cache as `jars_directory` finds them, with the logger of a supported release."""
    target = cache / f"kafka-{version}"
    target.mkdir(parents=True)
    logger = [jars_directory(NEWEST) / name for name in LOGGING_JARS]
    for jar in [*(each for each in folder.glob("*.jar") if each.name not in LOGGING_JARS), *logger]:
        (target / jar.name).symlink_to(jar.resolve())
