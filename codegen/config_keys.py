"""Configuration keys of a Kafka release, as its own ConfigDefs know them, into configs.json."""

from pathlib import Path

from mockraft.codegen.java_programs import run_java


def extract_config_keys(classpath: str, out_path: Path) -> None:
    """Writes names, types, defaults and validators by resource type, and the broker synonyms of topic keys.

    `classpath` holds the release's kafka_2.13 and what it needs. SyncError when Java is missing or fails.
    """
    out_path.write_text(run_java("ConfigKeys", classpath))
