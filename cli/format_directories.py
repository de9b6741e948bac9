"""`mockraft format`, what `kafka-storage format` does for a broker's log directories, and `mockraft random-uuid`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn

from mockraft.brokers.config import fields_in
from mockraft.brokers.log_dirs.ensemble import LogDirsError
from mockraft.brokers.log_dirs.placement import CORDONED_LOG_DIRS, cordoned_paths
from mockraft.brokers.log_dirs.storage_format import format_log_dirs
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.cli.serve.release import feature_level
from mockraft.files.given_files import read_file
from mockraft.kafka_api.options import Option, OptionError, option, required
from mockraft.kafka_configs import java_properties
from mockraft.releases import METADATA_VERSION, release
from mockraft.server.controller.settings.features import (
    InitialLevels,
    default_feature_levels,
    initial_levels,
    metadata_version_level,
)
from mockraft.wire.directory_ids import draw_uuid
from mockraft.wire.uuids import text_of

PROPERTIES_BYTES_MAX = 1 << 20

FORMAT_ABOUT = """Format the log directories of a broker, real or simulated, as kafka-storage format does (KIP-858).

Each directory gets a meta.properties with the cluster's id, the node's id and a directory.id of its own. Directories
that are missing are made. Kafka's brokers start on them, and mockraft's on those that Kafka formatted.

  mockraft format --node-id 1 --cluster-id T0ta1ly_Mocked-Cluster --log-dir data/d0 --log-dir data/d1
  mockraft format --cluster-id T0ta1ly_Mocked-Cluster --config server.properties --ignore-formatted

After one that cannot be formatted is mended, --ignore-formatted formats what is left.

""" + exit_codes(ExitCode.UNUSABLE_DIRECTORY, done="all are formatted")

_VOTERS = "controller.quorum.voters"
_FLAGS = "--standalone, --initial-controllers, or --no-initial-controllers"
_KRAFT_VERSION = (
    f"Cannot set kraft.version to {{}} {_VOTERS} is empty and one of the flags {_FLAGS} is used. "
    "For dynamic controllers support, try {}."
)

Seed = Annotated[int | None, Option(help="Seed of the ids, for runs that repeat.")]


class _Node(NamedTuple):
    """Directories to format, and their properties."""

    node_id: int
    log_dirs: list[str]
    metadata_log_dir: str | None
    has_voters: bool = False


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """Options of `mockraft format`."""

    cluster_id: str = required("--cluster-id", "-t", help="The cluster's id; mockraft random-uuid draws one.")
    node_id: int | None = option(None, lowest=0, highest=2**31 - 1, help="node.id of the broker.")
    log_dir: list[str] | None = option(None, help="Path of a log directory; may be repeated.", metavar="DIR")
    metadata_log_dir: str | None = option(
        None, metavar="DIR", help="Where the metadata log lies. Default: the first log directory, as in Kafka."
    )
    release_version: str | None = option(
        None,
        "--release-version",
        "-r",
        help="metadata.version of the cluster: a release, or a level. Default: the newest.",
    )
    feature: list[str] | None = option(
        None, "--feature", "-f", metavar="NAME=LEVEL", help="Level of a feature of the cluster; may be repeated."
    )
    standalone: bool = option(False, "--standalone", "-s", help="For a controller only: mockraft serve --data-dir.")
    no_initial_controllers: bool = option(
        False, "--no-initial-controllers", "-N", help="The node is no voter, which a broker never is."
    )
    config: Path | None = option(
        None,
        "--config",
        "-c",
        help="A broker's server.properties: node.id, log.dirs and metadata.log.dir come from there.",
    )
    ignore_formatted: bool = option(
        False, "--ignore-formatted", "-g", help="Pass over what is formatted already, and format the rest."
    )
    seed: int | None = option(None, help="Seed of the ids, for runs that repeat.")

    def node(self) -> _Node:
        """Return the node that the options name, and properties where an option is missing."""
        in_file = _Node(-1, [], None) if self.config is None else _node_in(self.config)
        if self.node_id is not None and in_file.node_id not in (-1, self.node_id):
            _bad(f"--node-id {self.node_id}, but node.id={in_file.node_id} in {self.config}", "--node-id")
        node_id = in_file.node_id if self.node_id is None else self.node_id
        if node_id < 0:
            _bad("say which broker: --node-id, or node.id in --config", "--node-id")
        if self.log_dir:
            return in_file._replace(node_id=node_id, log_dirs=self.log_dir, metadata_log_dir=self.metadata_log_dir)
        if not in_file.log_dirs:
            _bad("say which directories: --log-dir, or log.dirs in --config", "--log-dir")
        metadata_log_dir = self.metadata_log_dir or in_file.metadata_log_dir
        return in_file._replace(node_id=node_id, metadata_log_dir=metadata_log_dir)


def format_command(options: FormatOptions) -> None:
    """Format; see FORMAT_ABOUT."""
    node = options.node()
    levels = _levels(options, node)
    try:
        done = format_log_dirs(
            node.log_dirs,
            node.node_id,
            options.cluster_id,
            random.Random(options.seed),
            metadata_log_dir=node.metadata_log_dir,
            ignore_formatted=options.ignore_formatted,
        )
    except LogDirsError as error:
        end("format", error, ExitCode.UNUSABLE_DIRECTORY)
    version = release().metadata_version(levels.metadata_version).name
    for line in done.lines(_bootstrap(levels), version):
        print(line)


def random_uuid(seed: Seed = None) -> None:
    """Draw a uuid as Kafka writes them, for a cluster id."""
    print(text_of(draw_uuid(random.Random(seed))))


def _levels(options: FormatOptions, node: _Node) -> InitialLevels:
    """Return the levels of the cluster. OptionError where kafka-storage refuses the options."""
    if options.standalone:
        _bad("You can only use --standalone on a controller. mockraft serve formats its --data-dir.", "--standalone")
    level = 0
    if options.release_version is not None:
        try:
            level = metadata_version_level(options.release_version, release())
        except ValueError as error:
            _bad(str(error), "--release-version")
    try:
        chosen = dict(map(feature_level, options.feature or ()))
        if level and METADATA_VERSION in chosen:
            raise ValueError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
        levels = initial_levels(release(), level, chosen)
    except ValueError as error:
        _bad(str(error), "--feature")
    if levels.kraft_version == 0 and not node.has_voters:
        _bad(_KRAFT_VERSION.format("0 if", "removing the --feature flag for kraft.version"), "--feature")
    if levels.kraft_version == 1 and node.has_voters:
        _bad(_KRAFT_VERSION.format("1 unless", f"using one of {_FLAGS} and removing {_VOTERS}"), "--feature")
    return levels


def _bootstrap(levels: InitialLevels) -> str:
    """Return kafka-storage's line about the first records of the cluster's log."""
    features = {**default_feature_levels(levels.metadata_version, release()), **levels.others}
    named = [(METADATA_VERSION, levels.metadata_version), *sorted(features.items())]
    records = ", ".join(
        f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level}) at version 0)"
        for name, level in named
        if level > 0
    )
    about = f"records=[{records}], metadataVersionLevel={levels.metadata_version}, source=format command"
    return f"Bootstrap metadata: BootstrapMetadata({about})"


def _node_in(path: Path) -> _Node:
    try:
        properties = java_properties.read(read_file(path, PROPERTIES_BYTES_MAX))
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
    try:
        fields_in(properties)
        cordoned_paths(properties.get(CORDONED_LOG_DIRS, ""), log_dirs)
    except ValueError as error:
        _bad(f"{path}: {error}", "--config")
    metadata_log_dir = properties.get("metadata.log.dir", "").strip() or None
    return _Node(int(text), log_dirs, metadata_log_dir, bool(_words(properties, _VOTERS)))


def _words(properties: Mapping[str, str], key: str) -> list[str]:
    return [word.strip() for word in properties.get(key, "").split(",") if word.strip()]


def _bad(text: str, option: str) -> NoReturn:
    raise OptionError(text, option)


COMMANDS = {
    "format": Command("format", format_command, FORMAT_ABOUT),
    "random-uuid": Command("random-uuid", random_uuid),
}
