"""`mockraft state`, `clock` and `scenarios`: a running controller as a whole."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from mockraft.cli.admin.remote import Remote, RemoteCommands, known, table
from mockraft.files.given_files import SNAPSHOT_BYTES_MAX, read_file
from mockraft.files.private_files import write_private
from mockraft.kafka_api.options import Milliseconds, Option

STATE = """A running controller as a whole. Without a command: how it stands.

  mockraft state --json                  all that it knows
  mockraft state save cluster.state      as one file: serve --initial-state, Controller(state=…), Kafka's tools
  mockraft state load cluster.state      begin anew with it; connections break
  mockraft state snapshot · restart
  mockraft state reset                   take stubs, faults and the journal away, between two tests
"""
CLOCK = """The controller's clock. Without a command: what time it is.

  mockraft clock
  mockraft clock advance 9s              serve --virtual-clock: sessions end, periodic work runs, without waiting
"""
SCENARIOS = """The scenarios that stubs are part of, and the state of each. Without a command: list them.

  mockraft scenarios
  mockraft scenarios set failover Recovered
  mockraft scenarios reset               all are Started again
"""


state_commands = RemoteCommands("state", STATE)
clock_commands = RemoteCommands("clock", CLOCK)
scenario_commands = RemoteCommands("scenarios", SCENARIOS)


@state_commands.add()
def state(to: Remote) -> None:
    """Tell how the controller stands; with --json all that it knows."""
    if to.as_json:
        print(json.dumps(to.api.get("/v1/state"), indent=2))
        return
    health, quorum = to.api.get("/v1/health"), to.api.get("/v1/quorum")
    rows = [
        ("cluster", health["clusterId"]),
        ("bootstrap", health["bootstrap"]),
        ("leader", f"{quorum['leaderId']} in epoch {quorum['epoch']}"),
        ("nodes", ", ".join(map(str, health["nodes"]))),
        ("log", f"{quorum['logStartOffset']} to {quorum['logEndOffset']}, committed to {quorum['highWatermark']}"),
        ("brokers", f"{health['brokers']['total']}, {health['brokers']['fenced']} of them fenced"),
        ("requests", f"{health['requests']}, {health['failures']} failures"),
        ("release", f"{health['release']}, metadata.version {health['metadataVersion']}"),
        ("mockraft", health["version"]),
    ]
    to.show(None, lambda: table(("", ""), rows, ""))


@state_commands.add("save")
def save(to: Remote, file: Annotated[Path, Option(is_argument=True, help="The file; overwritten.")]) -> None:
    """Write the whole state into a file, a snapshot in Kafka's own format."""
    data = to.api.read("GET", "/v1/state/file")
    write_private(file, data)
    to.show({"file": str(file), "bytes": len(data)}, f"{file}: {len(data):,} bytes")


@state_commands.add("load")
def load(
    to: Remote, file: Annotated[Path, Option(is_argument=True, help="What save wrote, or a *.checkpoint of Kafka's.")]
) -> None:
    """Begin anew with a saved state; connections break."""
    state = read_file(file, SNAPSHOT_BYTES_MAX)
    to.api.read("PUT", "/v1/state/file", state, {"content-type": "application/octet-stream"})
    to.show(None, f"the controller is as {file} says")


@state_commands.add("snapshot")
def snapshot(to: Remote) -> None:
    """Write a snapshot of all that is committed."""
    found = to.api.send("POST", "/v1/snapshots")
    to.show(found, f"a snapshot up to offset {found['endOffset']}")


@state_commands.add("restart")
def restart(to: Remote) -> None:
    """Restart the controller in place, with its log; connections break."""
    to.api.send("POST", "/v1/restart")
    to.show(None, "restarted")


@state_commands.add("reset")
def reset(
    to: Remote,
    state: Annotated[bool, Option(flags=("--state",), help="A new controller too; connections break.")] = False,
) -> None:
    """Take away stubs, faults, scenarios and the journal's entries, between two tests."""
    to.api.send("POST", "/v1/reset", {"state": state})
    to.show(None, "as it began" if state else "stubs, faults and the journal are empty")


@clock_commands.add()
def clock(to: Remote) -> None:
    """Tell the controller's time."""
    _time(to, to.api.get("/v1/clock"))


@clock_commands.add("advance")
def advance(
    to: Remote,
    by: Annotated[Milliseconds, Option(is_argument=True, metavar="TIME", help="500ms, 9s, 2m; plain are ms.")],
) -> None:
    """Move a virtual clock on; what is due on the way happens at its time."""
    _time(to, to.api.send("POST", "/v1/clock/advance", {"ms": by}))


@scenario_commands.add()
def scenarios(to: Remote) -> None:
    """List the scenarios and their states."""
    found = to.api.get("/v1/scenarios")
    rows = [(each["name"], each["state"]) for each in found["scenarios"]]
    to.show(found, lambda: table(("SCENARIO", "STATE"), rows, "no stub is part of a scenario"))


@scenario_commands.add("set")
def set_scenario(
    to: Remote,
    name: Annotated[
        str, Option(is_argument=True, help="The scenario.", completes=known("/v1/scenarios", "scenarios", "name"))
    ],
    state: Annotated[str, Option(is_argument=True, help="Its new state.")],
) -> None:
    """Put a scenario into a state."""
    to.show(to.api.send("PUT", f"/v1/scenarios/{name}", {"state": state}), f"{name} is {state}")


@scenario_commands.add("reset")
def reset_scenarios(to: Remote) -> None:
    """Put every scenario back to where it began."""
    to.api.send("POST", "/v1/scenarios/reset")
    to.show(None, "all scenarios are Started")


def _time(to: Remote, found: dict[str, Any]) -> None:
    time = datetime.fromtimestamp(found["nowMs"] / 1000)
    kind = "virtual" if found["virtual"] else "the machine's"
    to.show(found, f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03} ({kind} clock)")


COMMANDS = {"state": state_commands.command, "clock": clock_commands.command, "scenarios": scenario_commands.command}
