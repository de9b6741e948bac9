"""`mockraft brokers`, `topics` and `records`: the cluster as a running controller knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from mockraft.cli.admin.remote import Remote, RemoteCommands, compact, given, known, table, value_of
from mockraft.kafka_api.options import Option
from mockraft.releases import METADATA_VERSION, metadata_version

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

BROKERS = """The registered brokers. Without a command: list them.

  mockraft brokers
  mockraft brokers fence 1               until its next heartbeat
  mockraft brokers expire-session 1      as if it had not been heard of
  mockraft brokers unregister 1
  mockraft brokers fail-log-dir 1 DIRECTORY_ID
"""
TOPICS = """The topics and their partitions. Without a command: list them.

  mockraft topics
  mockraft topics elect orders 0 --leader 2
"""
RECORDS = """The metadata log. Without a command: its newest records, as Kafka's JSON.

  mockraft records --limit 5
  mockraft records --from 0 --json
  mockraft records append FeatureLevelRecord '{"name": "group.version", "featureLevel": 1}'
"""

BrokerId = Annotated[
    int,
    Option(
        is_argument=True, metavar="ID", help="The broker's id.", completes=known("/v1/brokers", "brokers", "brokerId")
    ),
]


broker_commands = RemoteCommands("brokers", BROKERS)
topic_commands = RemoteCommands("topics", TOPICS)
record_commands = RemoteCommands("records", RECORDS)


@broker_commands.add()
def brokers(to: Remote) -> None:
    """List the brokers, by id."""
    found = to.api.get("/v1/brokers")
    now_ms = to.api.get("/v1/clock")["nowMs"]
    rows = [
        (
            each["brokerId"],
            _state(each),
            each["epoch"],
            _contact(each.get("lastContactMs"), now_ms),
            each.get("lag"),
            each.get("rack"),
            _supported_version(each["features"]),
            " ".join(f"{listener['host']}:{listener['port']}" for listener in each["listeners"]),
            _directories(each["logDirs"]),
        )
        for each in found["brokers"]
    ]
    columns = ("ID", "STATE", "EPOCH", "LAST CONTACT", "LAG", "RACK", "SUPPORTS", "LISTENERS", "LOG DIRS")
    to.show(found, lambda: table(columns, rows, "no brokers are registered"))


@broker_commands.add("fence")
def fence(to: Remote, broker_id: BrokerId) -> None:
    """Fence a broker; its next heartbeat that does not ask to be fenced unfences it."""
    _command(to, broker_id, "fence")


@broker_commands.add("unfence")
def unfence(to: Remote, broker_id: BrokerId) -> None:
    """Unfence a broker and renew its session."""
    _command(to, broker_id, "unfence")


@broker_commands.add("expire-session")
def expire_session(to: Remote, broker_id: BrokerId) -> None:
    """Have a broker's session be over now: it is fenced until its next heartbeat."""
    _command(to, broker_id, "expire-session")


@broker_commands.add("unregister")
def unregister(to: Remote, broker_id: BrokerId) -> None:
    """Forget a broker, as UnregisterBroker does."""
    to.api.send("POST", f"/v1/brokers/{broker_id}/unregister")
    to.show(None, f"broker {broker_id} is not registered any more")


@broker_commands.add("fail-log-dir")
def fail_log_dir(
    to: Remote, broker_id: BrokerId, directory: Annotated[str, Option(is_argument=True, help="The directory's id.")]
) -> None:
    """Take a log directory offline, as when the broker reports it."""
    _command(to, broker_id, "fail-log-dir", {"id": directory})


@topic_commands.add()
def topics(to: Remote) -> None:
    """List the partitions of all topics."""
    found = to.api.get("/v1/topics")
    rows = [
        (
            topic["name"],
            each["partition"],
            "none" if each["leader"] < 0 else each["leader"],
            each["leaderEpoch"],
            _ids(each["replicas"]),
            _ids(each["isr"]),
        )
        for topic in found["topics"]
        for each in topic["partitions"]
    ]
    columns = ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR")
    to.show(found, lambda: table(columns, rows, "no topics"))


@topic_commands.add("elect")
def elect(
    to: Remote,
    topic: Annotated[str, Option(is_argument=True, help="Name of the topic.")],
    partition: Annotated[int, Option(is_argument=True, help="Number of the partition.")],
    leader: Annotated[int | None, Option(help="The replica to lead. Default: the preferred one.")] = None,
    unclean: Annotated[bool, Option(flags=("--unclean",), help="Also one that is not in sync.")] = False,
) -> None:
    """Make a replica the leader of a partition."""
    body = given(topic=topic, partition=partition, unclean=unclean, leader=leader)
    found = to.api.send("POST", "/v1/elections", body)
    to.show(found, f"{topic}-{partition} is led by {found['leader']} in epoch {found['leaderEpoch']}")


@record_commands.add()
def records(
    to: Remote,
    from_: Annotated[
        int | None, Option(flags=("--from",), help="First offset; a negative one counts from the end.")
    ] = None,
    limit: Annotated[int, Option(lowest=1, help="How many.")] = 20,
) -> None:
    """List records of the metadata log."""
    found = to.api.get("/v1/records", **{"from": -limit if from_ is None else from_, "limit": limit})
    rows = [(each["offset"], each["epoch"], each["type"], compact(each["record"])) for each in found["records"]]
    to.show(found, lambda: table(("OFFSET", "EPOCH", "TYPE", "RECORD"), rows, "no records"))


@record_commands.add("append")
def append(
    to: Remote,
    type_: Annotated[str, Option(is_argument=True, metavar="TYPE", help="ConfigRecord, FenceBrokerRecord, …")],
    record: Annotated[str, Option(is_argument=True, metavar="JSON", help="Its fields as Kafka's JSON.")],
    version: Annotated[int | None, Option(help="Default: the one that fits.")] = None,
) -> None:
    """Write a metadata record; it must follow from the state."""
    body = {**given(type=type_, version=version), "record": value_of(record)}
    found = to.api.send("POST", "/v1/records", {"records": [body]})
    to.show(found, f"written at offset {found['from']}")


def _command(to: Remote, broker_id: int, verb: str, body: Json = None) -> None:
    found = to.api.send("POST", f"/v1/brokers/{broker_id}/{verb}", body)
    to.show(found, f"broker {broker_id}: {_state(found)}")


def _state(broker: Mapping[str, Json]) -> str:
    if broker["fenced"]:
        return "fenced"
    return "shutting down" if broker["inControlledShutdown"] else "active"


def _contact(contact_ms: int | None, now_ms: int) -> str:
    if contact_ms is None:
        return "-"
    return "expired" if contact_ms < 0 else f"{(now_ms - contact_ms) / 1000:.1f} s ago"


def _supported_version(features: Mapping[str, Mapping[str, int]]) -> str:
    """Return the name of the highest metadata.version, or its level if it has none here."""
    if METADATA_VERSION not in features:
        return "-"
    level = features[METADATA_VERSION]["maxVersion"]
    try:
        return metadata_version(level).name
    except ValueError:
        return str(level)


def _directories(log_dirs: list[dict[str, str]]) -> str:
    return " ".join(each["id"] if each["state"] == "online" else f"{each['id']} ({each['state']})" for each in log_dirs)


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers)) or "none"


COMMANDS = {"brokers": broker_commands.command, "topics": topic_commands.command, "records": record_commands.command}
