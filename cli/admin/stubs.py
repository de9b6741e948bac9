"""`mockraft stubs`: what is answered instead of the controller."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mockraft.cli.admin.remote import (
    Remote,
    RemoteCommands,
    assignments,
    compact,
    given,
    known,
    switches,
    table,
    value_of,
)
from mockraft.cli.admin.requests import api_names
from mockraft.cli.exit_codes import ExitCode
from mockraft.cli.refusals import end
from mockraft.files.trees import GivenFileError, NoYamlError
from mockraft.kafka_api.options import Option, OptionError, argument, option
from mockraft.server.stubs.faults.chaos import chaos_from_json
from mockraft.server.stubs.stub_file import read_stub_file
from mockraft.wire import error_codes

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

ABOUT = """Stubs: which requests get another answer than the controller's, and when. Without a command: list them.

  mockraft stubs
  mockraft stubs add BrokerHeartbeat --broker-id 1 --times 3 --inject-error NOT_CONTROLLER
  mockraft stubs add BrokerHeartbeat --where wantFence=true --where 'currentMetadataOffset={"gte": 5}' --delay-ms 500
  mockraft stubs add Fetch --name frozen --blackhole
  mockraft stubs add AllocateProducerIds --action '{"answer": {"errorCode": 0, "producerIdStart": 9000}}'
  mockraft stubs load stubs.yaml                  stubs, faults and a plan, as serve --stubs reads them
  mockraft stubs off stub-1 · on stub-1 · remove stub-1 · remove --all · release
"""

Id = Annotated[
    str, Option(is_argument=True, metavar="ID", help="The stub's id.", completes=known("/v1/stubs", "stubs"))
]


def _error_names() -> list[str]:
    return [each for each in vars(error_codes) if each.isupper()]


commands = RemoteCommands("stubs", ABOUT)


@commands.add()
def listed(
    to: Remote, unused: Annotated[bool, Option(flags=("--unused",), help="Those that never served.")] = False
) -> None:
    """List the stubs in the order in which they are asked."""
    found = to.api.get("/v1/stubs/unused" if unused else "/v1/stubs")
    rows = [
        (
            stub["id"],
            stub.get("name"),
            stub.get("enabled", True),
            _match(stub.get("match", {})),
            _trigger(stub.get("trigger", {})),
            ", ".join(map(_action, stub.get("actions", ()))) or "pass through",
            stub.get("calls", 0),
        )
        for stub in found["stubs"]
    ]
    columns = ("ID", "NAME", "ON", "REQUESTS", "WHEN", "DOES", "CALLS")
    to.show(found, lambda: table(columns, rows, "no stubs: mockraft stubs add --help"))


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """A stub: which requests, when, and what is done."""

    api: str | None = argument(None, metavar="API", help="Name of the API; any when left out.", completes=api_names)
    broker_id: int | None = option(None, help="Only requests of this broker.")
    client_id: str | None = option(None, help="Only requests of this client.")
    version: int | None = option(None, help="Only this version of the request.")
    node: int | None = option(None, help="Only at this node of a quorum.")
    where: list[str] | None = option(
        None, metavar="FIELD=VALUE", help='A field of the request; VALUE may be {"gte": 5}.'
    )
    times: int | None = option(None, help="Only so many times.")
    on_call: int | None = option(None, help="Only the how-manieth request.")
    probability: float | None = option(None, help="Only with this probability.")
    seed: int = option(0, help="Seed of its random choices.")
    inject_error: str | None = option(None, metavar="CODE", help="Answer NOT_CONTROLLER, …", completes=_error_names)
    delay_ms: int | None = option(None, help="Answer so much later.")
    drop: bool = option(False, help="Answer nothing.")
    disconnect: bool = option(False, help="Close the connection.")
    blackhole: bool = option(False, help="Answer this client nothing any more.")
    action: list[str] | None = option(None, metavar="JSON", help="Any action; repeat for a chain.")
    id: str | None = option(None, help="Its id; made when left out.")
    name: str | None = option(None, help="What it is called in lists and reports.")
    priority: int = option(0, help="The highest of those that match serves.")

    def stub(self) -> dict[str, Json]:
        """Return the stub as the API takes it."""
        match = given(
            api=self.api,
            brokerId=self.broker_id,
            clientId=self.client_id,
            version=self.version,
            node=self.node,
            where=assignments(self.where or (), "--where") or None,
        )
        return given(
            id=self.id,
            name=self.name,
            priority=self.priority or None,
            match=match,
            trigger=self._trigger(),
            actions=self._actions() or None,
        )

    def _trigger(self) -> dict[str, Json] | None:
        wanted = given(times=self.times, onCall=self.on_call, withProbability=self.probability)
        if len(wanted) > 1:
            raise OptionError("--times, --on-call and --probability exclude each other")
        return {**wanted, "seed": self.seed} if self.probability is not None else wanted or None

    def _actions(self) -> list[Json]:
        actions: list[Json] = [value_of(each) for each in self.action or ()]
        actions += [{"delayOn": {"ms": self.delay_ms}}] if self.delay_ms is not None else []
        actions += [{"injectError": self.inject_error}] if self.inject_error else []
        silences = {"drop": self.drop, "disconnectOn": self.disconnect, "blackhole": self.blackhole}
        return actions + [{silence: True} for silence, is_wanted in silences.items() if is_wanted]


@commands.add("add")
def add(to: Remote, options: AddOptions) -> None:
    """Put a stub in the way; print its id."""
    made = to.api.send("POST", "/v1/stubs", options.stub())
    to.show(made, made["id"])


@commands.add("load")
def load(to: Remote, file: Annotated[Path, Option(is_argument=True, help="A stub file, JSON or YAML.")]) -> None:
    """Add all stubs, faults and the plan of a stub file."""
    tree = _read(file)
    stubs = to.api.send("POST", "/v1/stubs/import", {"stubs": tree["stubs"]})["stubs"] if tree.get("stubs") else []
    faults = [to.api.send("POST", "/v1/faults", fault) for fault in tree.get("faults") or ()]
    plan = to.api.send("POST", "/v1/plan", {"plan": tree["plan"]})["plan"] if tree.get("plan") else []
    added = f"added {len(stubs)} stubs and {len(faults)} faults, {len(plan)} steps of a plan run"
    to.show({"stubs": stubs, "faults": faults, "plan": plan}, added)


@commands.add("show")
def show(to: Remote, stub_id: Id) -> None:
    """Print one stub as JSON."""
    print(json.dumps(to.api.get(f"/v1/stubs/{stub_id}"), indent=2))


switches(commands, "stub")


@commands.add("release")
def release(
    to: Remote,
    client_id: Annotated[str | None, Option(help="Only this client.")] = None,
    connection: Annotated[int | None, Option(help="Only this connection.")] = None,
) -> None:
    """Answer again who is blackholed; everybody when nobody is named."""
    found = to.api.send("POST", "/v1/stubs/release", given(clientId=client_id, connection=connection))
    to.show(found, f"{found['released']} released")


def _read(file: Path) -> dict[str, Any]:
    """The file's parts, with the steps that a chaos stands for."""
    try:
        tree = read_stub_file(file).to_json()
        if isinstance(tree["plan"], dict):
            tree["plan"] = chaos_from_json(tree["plan"].get("chaos", {}))
    except NoYamlError as wrong:
        end("stubs load", wrong, ExitCode.MISSING)
    except GivenFileError as wrong:
        raise OptionError(str(wrong)) from None
    except ValueError as wrong:
        raise OptionError(f"{file}: plan.{wrong}") from None
    return tree


def _match(match: dict[str, Any]) -> str:
    match = dict(match)
    api, where = match.pop("api", "any"), match.pop("where", {})
    conditions = [
        f"{name}={value if isinstance(value, str) else compact(value)}" for name, value in {**match, **where}.items()
    ]
    return " ".join([api if isinstance(api, str) else compact(api), *conditions])


def _trigger(trigger: dict[str, Json]) -> str:
    shown = {name: value for name, value in trigger.items() if name != "seed" or value}
    return " ".join(name if value is True else f"{name} {value}" for name, value in shown.items()) or "every time"


def _action(action: dict[str, Json]) -> str:
    return " ".join(f"{name} {compact(value)}" if value not in ({}, True) else name for name, value in action.items())


COMMANDS = {"stubs": commands.command}
