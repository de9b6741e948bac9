"""`mockraft format`, what `kafka-storage format` does for a broker's log directories, and `mockraft random-uuid`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn

import typer

REFUSED = 1
PROPERTIES_BYTES_MAX = 1 << 20

FORMAT_ABOUT = """Format the log directories of a broker, real or simulated, as kafka-storage format does (KIP-858).

Each directory gets a meta.properties with the cluster's id, the node's id and a directory.id of its own. Directories
that are missing are made. Kafka's brokers start on them, and mockraft's on those that Kafka formatted.

\b
  mockraft format --node-id 1 --cluster-id T0ta1ly_Mocked-Cluster --log-dir data/d0 --log-dir data/d1
  mockraft format --cluster-id T0ta1ly_Mocked-Cluster --config server.properties --ignore-formatted

Exit codes: 0 all are formatted, 1 one cannot be (mended, --ignore-formatted formats what is left), 2 a bad option.
"""

ClusterId = Annotated[str, typer.Option("--cluster-id", "-t", help="The cluster's id; mockraft random-uuid draws one.")]
NodeId = Annotated[int | None, typer.Option(min=0, max=2**31 - 1, help="node.id of the broker.")]
LogDirs = Annotated[
    list[str] | None, typer.Option("--log-dir", help="Path of a log directory; may be repeated.", metavar="DIR")
]
MetadataLogDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Where the metadata log lies. Default: the first log directory, as in Kafka."),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="A broker's server.properties: node.id, log.dirs and metadata.log.dir come from there."
    ),
]
IgnoreFormatted = Annotated[
    bool, typer.Option("--ignore-formatted", "-g", help="Pass over what is formatted already, and format the rest.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the ids, for runs that repeat.")]


class _Node(NamedTuple):
    """Directories to format, and their properties."""

    node_id: int
    log_dirs: list[str]
    metadata_log_dir: str | None


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("format", help=FORMAT_ABOUT, short_help="Format a broker's log directories, as kafka-storage does.")(
        format_command
    )
    app.command("random-uuid", short_help="Draw a cluster id.")(random_uuid)


def format_command(
    cluster_id: ClusterId,
    node_id: NodeId = None,
    log_dir: LogDirs = None,
    metadata_log_dir: MetadataLogDir = None,
    config: Config = None,
    ignore_formatted: IgnoreFormatted = False,
    seed: Seed = None,
) -> None:
    """Format; see FORMAT_ABOUT."""
    from mockraft.brokers.log_dirs.ensemble import LogDirsError
    from mockraft.brokers.log_dirs.storage_format import format_log_dirs

    node = _node(config, node_id, log_dir or [], metadata_log_dir)
    try:
        done = format_log_dirs(
            node.log_dirs,
            node.node_id,
            cluster_id,
            random.Random(seed),
            metadata_log_dir=node.metadata_log_dir,
            ignore_formatted=ignore_formatted,
        )
    except LogDirsError as error:
        typer.echo(f"mockraft format: {error}", err=True)
        raise typer.Exit(REFUSED) from None
    for line in done.lines:
        typer.echo(line)


def random_uuid(seed: Seed = None) -> None:
    """Draw a uuid as Kafka writes them, for a cluster id."""
    from mockraft.serving.directory_ids import draw_uuid
    from mockraft.wire.uuids import text_of

    typer.echo(text_of(draw_uuid(random.Random(seed))))


def _node(config: Path | None, node_id: int | None, log_dirs: list[str], metadata_log_dir: str | None) -> _Node:
    """Return the options, and properties where an option is missing."""
    in_file = _Node(-1, [], None) if config is None else _node_in(config)
    if node_id is not None and in_file.node_id not in (-1, node_id):
        _bad(f"--node-id {node_id}, but node.id={in_file.node_id} in {config}", "--node-id")
    if node_id is None and in_file.node_id < 0:
        _bad("say which broker: --node-id, or node.id in --config", "--node-id")
    if not (log_dirs or in_file.log_dirs):
        _bad("say which directories: --log-dir, or log.dirs in --config", "--log-dir")
    found = in_file.node_id if node_id is None else node_id
    return _Node(
        found, log_dirs or in_file.log_dirs, metadata_log_dir or (None if log_dirs else in_file.metadata_log_dir)
    )


def _node_in(path: Path) -> _Node:
    from mockraft.brokers.disks import durable_file
    from mockraft.brokers.log_dirs import java_properties

    try:
        properties = java_properties.read(durable_file.read(path, PROPERTIES_BYTES_MAX))
    except (OSError, ValueError) as error:
        _bad(f"{path}: {getattr(error, 'strerror', None) or error}", "--config")
    roles = _words(properties, "process.roles")
    if roles != ["broker"]:
        in_file = f"process.roles={','.join(roles)}" if roles else "no process.roles"
        _bad(
            f"{path} has {in_file}; this formats for process.roles=broker only (mockraft serve formats its --data-dir)",
            "--config",
        )
    text = properties.get("node.id", "").strip()
    if not text.isdecimal() or int(text) >= 2**31:
        _bad(f"{path}: node.id={text} is no id: want 0 to {2**31 - 1}", "--config")
    log_dirs = _words(properties, "log.dirs") or _words(properties, "log.dir") or ["/tmp/kafka-logs"]
    return _Node(int(text), log_dirs, properties.get("metadata.log.dir", "").strip() or None)


def _words(properties: Mapping[str, str], key: str) -> list[str]:
    return [word.strip() for word in properties.get(key, "").split(",") if word.strip()]


def _bad(text: str, option: str) -> NoReturn:
    raise typer.BadParameter(text, param_hint=option)
