"""`bootstrap.checkpoint`: the first records of a new cluster as a snapshot (Kafka's `BootstrapDirectory`)."""

from __future__ import annotations

from pathlib import Path

from mockraft.files.private_files import read_file
from mockraft.releases import METADATA_VERSION
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.errors import WireError
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
FILE_BYTES_MAX = 64 << 20


def fault_in(directory: Path) -> str | None:
    """Return the reason why the file in this directory prevents a broker's start; None when it is valid or missing.

    A broker does not need the file, but a real one reads that of its metadata log dir all the same.
    """
    path = directory / BOOTSTRAP_CHECKPOINT
    try:
        names = _feature_names(read_file(path, FILE_BYTES_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    except WireError as error:
        return f"{path}: {error}"
    if METADATA_VERSION in names:
        return None
    return (
        f"No FeatureLevelRecord for {METADATA_VERSION} was found in the bootstrap metadata from the binary bootstrap "
        f"metadata file: {path}"
    )


def _feature_names(data: bytes) -> set[str]:
    found = set()
    for batch in record_batch.read_batches(data, allow_partial_tail=True):
        for _, value in () if batch.is_control else batch.records:
            record = metadata_log_frame.decode(value or b"").record
            if isinstance(record, FeatureLevelRecord):
                found.add(record.name)
    return found
