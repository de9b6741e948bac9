"""Evidence of brokers that ran on controllers of each release: one row per pair, in `broker-runs.json`.

`MOCKRAFT_BROKER_RUNS=docs/evidence/data/broker-runs.json make soak` writes the rows of that run.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mockraft.kafka.jars import cache_directory, only_one
from mockraft.releases import NEWEST, SUPPORTED, release
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.spec_files import sort_key

from ..topics import ask

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence" / "data" / "broker-runs.json"
"""The committed rows."""

RUNS = "runs"
"""The result of a pair that did everything; otherwise it is the first line of the failure."""

PAIRS = [(broker, controller) for at, broker in enumerate(SUPPORTED) for controller in SUPPORTED[at:]]
"""Each broker with the controller of its own release and of every newer one.

Kafka allows them all: its controllers read metadata versions from 3.3-IV3 on, and a broker may register if it supports
the finalized levels (ClusterControlManager.processRegistrationFeature).
"""


@contextmanager
def recorded(broker: str, controller: str, metadata_version: str) -> Iterator[None]:
    """Write how the block ends into the file that `MOCKRAFT_BROKER_RUNS` names, if it is set."""
    result = "it was interrupted"
    try:
        yield
        result = RUNS
    except Exception as error:
        result = f"{type(error).__name__}: {error}".splitlines()[0]
        raise
    finally:
        if path := os.environ.get("MOCKRAFT_BROKER_RUNS"):
            row = {
                "broker": broker,
                "controller_release": release(controller).name,
                "metadata_version": metadata_version,
                "result": result,
                "date": datetime.now(UTC).date().isoformat(),
            }
            _replace(Path(path).absolute(), row)


def read(path: Path = EVIDENCE) -> list[dict[str, str]]:
    """Return the rows of a file; none if there is no such file."""
    rows: list[dict[str, str]] = json.loads(path.read_text()) if path.exists() else []
    return rows


def _replace(path: Path, row: dict[str, str]) -> None:
    with only_one(cache_directory() / "broker-runs.lock"):
        rows = {_key(each): each for each in read(path)} | {_key(row): row}
        lines = ",\n".join(json.dumps(rows[key]) for key in sorted(rows, key=lambda key: tuple(map(sort_key, key))))
        path.write_text(f"[\n{lines}\n]\n")


def _key(row: dict[str, str]) -> tuple[str, str]:
    return row["broker"], row["controller_release"]


def finalized_metadata_version(bootstrap: str) -> str:
    """Return the name of the metadata.version that a controller has finalized."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = asyncio.run(ask(bootstrap, request))
    (level,) = (row.max_version_level for row in answer.finalized_features if row.name == "metadata.version")
    return release(NEWEST).metadata_version(level).name
