"""The commands of `mockraft` by what they are for; each is imported when it is used.

Help and completion need names and one line for each, which are here; importing all commands takes 0.3 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from mockraft.cli.command_line import Command
from mockraft.kafka_api.options import Option

ABOUT = """A Kafka KRaft controller for tests: unmodified brokers run on it.

  mockraft run                       three simulated brokers on a controller, live in this terminal
  mockraft run-kafka                 a real Kafka broker on a controller
  mockraft serve --admin-port 8080   a controller to connect to, with its live page at 127.0.0.1:8080
  mockraft serve --help              each command explains itself so
"""


class Listed(NamedTuple):
    """A command: its module in `mockraft.cli`, which has it in `COMMANDS`, and its line in the help."""

    module: str
    about: str


GROUPS: Mapping[str, Mapping[str, Listed]] = {
    "Run a cluster": {
        "serve": Listed("serve.command", "Run a controller, or a quorum of several."),
        "run": Listed("run.command", "Show a controller with simulated brokers, live."),
        "run-kafka": Listed("run_kafka", "Run real Kafka brokers on mockraft."),
        "broker": Listed("broker.command", "Run one simulated broker on any controller."),
        "fleet": Listed("fleet.command", "Run many simulated brokers on any controller."),
        "health": Listed("health", "Check that a controller can commit records."),
    },
    "Use a running controller (serve --admin-port 8080)": {
        "stubs": Listed("admin.stubs", "List, add, switch and remove stubs."),
        "faults": Listed("admin.faults", "List, add and switch faults."),
        "scenarios": Listed("admin.control", "List and set the scenarios of stubs."),
        "requests": Listed("admin.requests", "List or follow the requests that it receives."),
        "brokers": Listed("admin.cluster", "List, fence and unregister brokers."),
        "topics": Listed("admin.cluster", "List topics; elect leaders."),
        "records": Listed("admin.cluster", "Read the metadata log; append records."),
        "state": Listed("admin.control", "Show, save, load, restart or reset the controller."),
        "clock": Listed("admin.control", "Show the clock; advance a virtual one."),
        "mcp": Listed("mcp.command", "Let an assistant script a controller and write the test (MCP)."),
    },
    "Capture and replay traffic": {
        "capture": Listed("traffic.capture", "Record the traffic between brokers and controllers."),
        "record": Listed("traffic.record", "Record a controller's responses as a stub file."),
        "replay": Listed("traffic.replay", "Send a capture's requests again and compare the responses."),
        "spark": Listed("spark.command", "Decode, verify, replay and report captures on Spark."),
    },
    "From an incident to a test": {
        "twin": Listed("twin.command", "Run a copy of a real controller, from its files or a capture."),
        "redact": Listed("twin.redact", "Copy a controller's metadata without names and secrets."),
        "lab": Listed("lab", "Run a test under many schedules of the controller."),
    },
    "Read and write bytes": {
        "decode": Listed("codec.command", "Decode bytes to JSON, as Kafka's converters write it."),
        "encode": Listed("codec.command", "Encode JSON to bytes, printed as hex."),
        "explain": Listed("codec.command", "Explain every byte: offset, field, type and value."),
        "vectors": Listed("vectors", "Write vectors for codecs, by Kafka's classes; judge a codec."),
    },
    "Compare with Kafka": {
        "conformance": Listed("conformance.command", "Compare a controller with Kafka's."),
        "cluster-tests": Listed("cluster_tests", "Run Kafka's @ClusterTest classes on mockraft."),
        "release-check": Listed("release_check", "Check a Kafka release candidate before a vote."),
        "differences": Listed("conformance.command", "List the known differences from Kafka."),
    },
    "Prepare brokers": {
        "format": Listed("format_directories", "Format a broker's log directories, as kafka-storage does."),
        "random-uuid": Listed("format_directories", "Draw a cluster id."),
        "broker-id": Listed("broker.ids", "Give brokers ids by their hosts' names."),
    },
    "This command line": {"completion": Listed("completion", "Print completion for bash, zsh or fish.")},
}

LISTED: Mapping[str, Listed] = {name: listed for group in GROUPS.values() for name, listed in group.items()}


class _Commands(Mapping[str, Command]):
    """The commands by name, imported when they are looked up."""

    def __getitem__(self, name: str) -> Command:
        found: Mapping[str, Command] = import_module(f"mockraft.cli.{LISTED[name].module}").COMMANDS
        return found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(LISTED)

    def __len__(self) -> int:
        return len(LISTED)

    def __contains__(self, name: object) -> bool:
        return name in LISTED


def _print_version() -> None:
    from importlib.metadata import version

    from mockraft.wire import codec_path
    from mockraft.wire.connection import SOFTWARE_VERSION

    print(f"mockraft {version('mockraft')}, speaking as Kafka {SOFTWARE_VERSION}, codec {codec_path.path}")


MOCKRAFT = Command(
    "mockraft",
    about=ABOUT,
    subcommands=_Commands(),
    listing={heading: {name: each.about for name, each in group.items()} for heading, group in GROUPS.items()},
    table=(
        Option(
            name="version",
            flags=("--version",),
            kind=bool,
            default=False,
            help="Show the version and exit.",
            action=_print_version,
        ),
    ),
)
"""The command `mockraft` itself."""
