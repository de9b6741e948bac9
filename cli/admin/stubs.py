"""`mockraft stubs`: what is answered instead of the controller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from mockraft.cli.admin.remote import Remote, assignments, compact, given, group, remote, table, value_of
from mockraft.cli.admin.switches import switches
from mockraft.cli.exit_codes import ExitCode
from mockraft.cli.refusals import end

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

ABOUT = """Stubs: which requests get another answer than the controller's, and when. Without a command: list them.

\b
  mockraft stubs
  mockraft stubs add BrokerHeartbeat --broker-id 1 --times 3 --inject-error NOT_CONTROLLER
  mockraft stubs add BrokerHeartbeat --where wantFence=true --where 'currentMetadataOffset={"gte": 5}' --delay-ms 500
  mockraft stubs add Fetch --name frozen --blackhole
  mockraft stubs add AllocateProducerIds --action '{"answer": {"errorCode": 0, "producerIdStart": 9000}}'
  mockraft stubs load stubs.yaml                  stubs, faults and a plan, as serve --stubs reads them
  mockraft stubs off stub-1 · on stub-1 · remove stub-1 · remove --all · release
"""

Id = Annotated[str, typer.Argument(metavar="ID", help="The stub's id.")]


commands = group("stubs", ABOUT, "List, add, switch and remove stubs.")


@remote(commands)
def listed(
    to: Remote, unused: Annotated[bool, typer.Option("--unused", help="Those that never served.")] = False
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


@remote(commands, "add", "Put a stub in the way.")
def add(
    to: Remote,
    api: Annotated[str | None, typer.Argument(metavar="API", help="Name of the API; any when left out.")] = None,
    broker_id: Annotated[int | None, typer.Option(help="Only requests of this broker.")] = None,
    client_id: Annotated[str | None, typer.Option(help="Only requests of this client.")] = None,
    version: Annotated[int | None, typer.Option(help="Only this version of the request.")] = None,
    node: Annotated[int | None, typer.Option(help="Only at this node of a quorum.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE", help='A field of the request; VALUE may be {"gte": 5}.')
    ] = None,
    times: Annotated[int | None, typer.Option(help="Only so many times.")] = None,
    on_call: Annotated[int | None, typer.Option(help="Only the how-manieth request.")] = None,
    probability: Annotated[float | None, typer.Option(help="Only with this probability.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of its random choices.")] = 0,
    inject_error: Annotated[str | None, typer.Option(metavar="CODE", help="Answer NOT_CONTROLLER, …")] = None,
    delay_ms: Annotated[int | None, typer.Option(help="Answer so much later.")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Answer nothing.")] = False,
    disconnect: Annotated[bool, typer.Option("--disconnect", help="Close the connection.")] = False,
    blackhole: Annotated[bool, typer.Option("--blackhole", help="Answer this client nothing any more.")] = False,
    action: Annotated[list[str] | None, typer.Option(metavar="JSON", help="Any action; repeat for a chain.")] = None,
    id: Annotated[str | None, typer.Option(help="Its id; made when left out.")] = None,  # noqa: A002
    name: Annotated[str | None, typer.Option(help="What it is called in lists and reports.")] = None,
    priority: Annotated[int, typer.Option(help="The highest of those that match serves.")] = 0,
) -> None:
    """Put a stub in the way; print its id."""
    fields = assignments(where or (), "--where") or None
    match = given(api=api, brokerId=broker_id, clientId=client_id, version=version, node=node, where=fields)
    actions: list[Json] = [value_of(each) for each in action or ()]
    actions += [{"delayOn": {"ms": delay_ms}}] if delay_ms is not None else []
    actions += [{"injectError": inject_error}] if inject_error else []
    silences = {"drop": drop, "disconnectOn": disconnect, "blackhole": blackhole}
    actions += [{silence: True} for silence, is_wanted in silences.items() if is_wanted]
    trigger = _when(times, on_call, probability, seed)
    stub = given(id=id, name=name, priority=priority or None, match=match, trigger=trigger, actions=actions or None)
    made = to.api.send("POST", "/v1/stubs", stub)
    to.show(made, made["id"])


@remote(commands, "load", "Add all stubs, faults and the plan of a file.")
def load(to: Remote, file: Annotated[Path, typer.Argument(help="A stub file, JSON or YAML.")]) -> None:
    """Add all stubs, faults and the plan of a stub file."""
    tree = _read(file)
    stubs = to.api.send("POST", "/v1/stubs/import", {"stubs": tree["stubs"]})["stubs"] if tree.get("stubs") else []
    faults = [to.api.send("POST", "/v1/faults", fault) for fault in tree.get("faults") or ()]
    plan = to.api.send("POST", "/v1/plan", {"plan": tree["plan"]})["plan"] if tree.get("plan") else []
    added = f"added {len(stubs)} stubs and {len(faults)} faults, {len(plan)} steps of a plan run"
    to.show({"stubs": stubs, "faults": faults, "plan": plan}, added)


@remote(commands, "show", "One stub as JSON.")
def show(to: Remote, stub_id: Id) -> None:
    """Print one stub as JSON."""
    print(json.dumps(to.api.get(f"/v1/stubs/{stub_id}"), indent=2))


switches(commands, "stub")


@remote(commands, "release", "Answer again who is blackholed.")
def release(
    to: Remote,
    client_id: Annotated[str | None, typer.Option(help="Only this client.")] = None,
    connection: Annotated[int | None, typer.Option(help="Only this connection.")] = None,
) -> None:
    """Answer again who is blackholed; everybody when nobody is named."""
    found = to.api.send("POST", "/v1/stubs/release", given(clientId=client_id, connection=connection))
    to.show(found, f"{found['released']} released")


def _when(times: int | None, on_call: int | None, probability: float | None, seed: int) -> dict[str, Json] | None:
    wanted = given(times=times, onCall=on_call, withProbability=probability)
    if len(wanted) > 1:
        raise typer.BadParameter("--times, --on-call and --probability exclude each other")
    return {**wanted, "seed": seed} if probability is not None else wanted or None


def _read(file: Path) -> dict[str, Any]:
    """The file's parts, with the steps that a chaos stands for."""
    from mockraft.server.stubs.faults.chaos import chaos_from_json
    from mockraft.server.stubs.stub_file import NoYamlError, StubFileError, read_stub_file

    try:
        tree = read_stub_file(file).to_json()
        if isinstance(tree["plan"], dict):
            tree["plan"] = chaos_from_json(tree["plan"].get("chaos", {}))
    except NoYamlError as wrong:
        end("stubs load", wrong, ExitCode.MISSING)
    except StubFileError as wrong:
        raise typer.BadParameter(str(wrong)) from None
    except ValueError as wrong:
        raise typer.BadParameter(f"{file}: plan.{wrong}") from None
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
