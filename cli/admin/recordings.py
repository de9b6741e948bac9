"""`mockraft recordings`: another controller's answers as stubs of a running one."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mockraft.cli.admin.remote import Remote, RemoteCommands, known, table
from mockraft.cli.traffic.record import MatchOptions
from mockraft.files.private_files import write_private
from mockraft.kafka_api.options import Option
from mockraft.wire.names import camel

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

ABOUT = """Another controller's answers as stubs. Without a command: list the recordings.

  mockraft recordings start 127.0.0.1:9093           prints the bootstrap address for brokers and clients
  mockraft recordings stubs recording-1 --out stubs.json
  mockraft recordings stop recording-1 --load        answer so from now on
  mockraft recordings journal --load                 go on answering as this controller has answered
  mockraft recordings remove recording-1
"""

Id = Annotated[
    str,
    Option(is_argument=True, metavar="ID", help="The recording's id.", completes=known("/v1/recordings", "recordings")),
]
Out = Annotated[Path | None, Option(help="Write the stubs into this file; stdout when left out.")]
Load = Annotated[bool, Option(flags=("--load",), help="Add the stubs to this controller's, in place of printing them.")]


commands = RemoteCommands("recordings", ABOUT)


@commands.add()
def listed(to: Remote) -> None:
    """List the recordings and the requests that each has recorded."""
    found = to.api.get("/v1/recordings")
    names = ("id", "upstream", "bootstrap", "running", "requests", "answers", "ended")
    rows = [[each[name] for name in names] for each in found["recordings"]]
    to.show(found, lambda: table([name.upper() for name in names], rows, "no recordings: mockraft recordings --help"))


@commands.add("start")
def start(
    to: Remote,
    upstream: Annotated[str, Option(is_argument=True, metavar="HOST:PORT", help="The controller that answers.")],
    choice: MatchOptions,
    listen: Annotated[str, Option(metavar="ADDRESS:PORT", help="Where brokers connect.")] = "127.0.0.1:0",
) -> None:
    """Listen in front of another controller; print the recording's id and where brokers connect."""
    made = to.api.send("POST", "/v1/recordings", {"upstream": upstream, "listen": listen, **_choice(choice)})
    to.show(made, f"{made['id']} bootstrap={made['bootstrap']}")


@commands.add("stubs")
def stubs(to: Remote, recording_id: Id, out: Out = None) -> None:
    """Give the stubs of what was recorded so far; it goes on."""
    _give(to, to.api.get(f"/v1/recordings/{recording_id}/stubs"), out)


@commands.add("stop")
def stop(to: Remote, recording_id: Id, out: Out = None, load: Load = False) -> None:
    """End a recording, and give its stubs; who is connected there is disconnected."""
    _give(to, to.api.send("POST", f"/v1/recordings/{recording_id}/stop{_load(load)}"), out)


@commands.add("journal")
def journal(to: Remote, choice: MatchOptions, out: Out = None, load: Load = False) -> None:
    """Give the stubs of what this controller has answered."""
    _give(to, to.api.send("POST", f"/v1/recordings/journal{_load(load)}", _choice(choice)), out)


@commands.add("remove")
def remove(to: Remote, recording_id: Id) -> None:
    """End a recording and forget it; stubs that were loaded stay."""
    to.api.send("DELETE", f"/v1/recordings/{recording_id}")
    to.show(None, f"{recording_id} is gone")


def _choice(choice: MatchOptions) -> dict[str, Json]:
    return {camel(name): [] if given is None else given for name, given in asdict(choice).items()}


def _load(load: bool) -> str:
    return "?load=true" if load else ""


def _give(to: Remote, found: dict[str, Any], out: Path | None) -> None:
    """A stub file, on stdout unless it is written or the stubs were loaded."""
    text = json.dumps({"stubs": found["stubs"]}, indent=1, ensure_ascii=False)
    if out is not None:
        write_private(out, f"{text}\n".encode())
    where = "loaded" if found["loaded"] else "made"
    summary = f"{len(found['stubs'])} stubs {where}" + (f", in {out}" if out is not None else "")
    to.show(found, summary if found["loaded"] or out is not None else text)


COMMANDS = {"recordings": commands.command}
