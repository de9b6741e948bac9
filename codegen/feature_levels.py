"""Metadata versions and features of a Kafka release, as its own classes know them, into features.json."""

from pathlib import Path

from mockraft.codegen.java_programs import run_java


def extract_feature_levels(classpath: str, out_path: Path) -> None:
    """Writes what MetadataVersion and Feature say: names, levels, record versions, default levels, dependencies.

    `classpath` holds the release's kafka-server-common and what it needs. SyncError when Java is missing or fails.
    """
    out_path.write_text(run_java("FeatureLevels", classpath))
