"""`mockraft faults`: what goes wrong on connections and in the controller, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from mockraft.cli.admin.remote import Remote, assignments, compact, given, group, remote, table
from mockraft.cli.admin.switches import switches

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

ABOUT = """Faults by name: of connections' bytes, and of the controller itself. Without a command: list them.

\b
  mockraft faults
  mockraft faults kinds                                   the kinds of faults, and their parameters
  mockraft faults add latency latencyMs=200 jitterMs=50
  mockraft faults add latency latencyMs=900 --match brokerId=1 --toxicity 0.5 --seed 7
  mockraft faults off latency-1 · on latency-1 · remove latency-1 · remove --all
  mockraft faults plan                                    the timed plan that runs, step by step
"""


commands = group("faults", ABOUT, "List, add and switch faults.")


@remote(commands)
def listed(
    to: Remote, unfired: Annotated[bool, typer.Option("--unfired", help="Those that met nothing.")] = False
) -> None:
    """List the faults, switched on or off, and how often they fired."""
    found = to.api.get("/v1/faults/unfired" if unfired else "/v1/faults")
    rows = [
        (
            fault["id"],
            fault["kind"],
            fault["enabled"],
            _pairs(fault["params"]),
            _pairs(fault.get("match", {})) or "all",
            fault["fired"],
            fault.get("error", ""),
        )
        for fault in found["faults"]
    ]
    columns = ("ID", "KIND", "ON", "PARAMETERS", "CONNECTIONS", "FIRED", "")
    to.show(found, lambda: table(columns, rows, "no faults: mockraft faults add --help"))


@remote(commands, "kinds", "What kinds of faults there are.")
def kinds(to: Remote) -> None:
    """List the kinds of faults with their parameters; * marks required ones."""
    found = to.api.get("/v1/faults/kinds")
    rows = [(kind["name"], " ".join(map(_parameter, kind["parameters"])), kind["summary"]) for kind in found["kinds"]]
    to.show(found, lambda: table(("KIND", "PARAMETERS", "WHAT IT DOES"), rows, "no kinds"))


@remote(commands, "add", "Switch a new fault on.")
def add(
    to: Remote,
    kind: Annotated[str, typer.Argument(help="One of `mockraft faults kinds`.")],
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters of the fault.")
    ] = None,
    match: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Only connections of brokerId=1, clientId=…, node=…")
    ] = None,
    toxicity: Annotated[float | None, typer.Option(help="Share of connections that it meets, 0 to 1.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of its random choices.")] = None,
    off_: Annotated[bool, typer.Option("--off", help="Add it switched off.")] = False,
    id: Annotated[str | None, typer.Option(help="Its id; made when left out.")] = None,  # noqa: A002
) -> None:
    """Switch a new fault on; print its id."""
    fault = given(id=id, toxicity=toxicity, seed=seed, match=assignments(match or (), "--match") or None)
    fault |= {"kind": kind, "enabled": not off_, "params": assignments(parameters or (), "NAME=VALUE")}
    made = to.api.send("POST", "/v1/faults", fault)
    to.show(made, made["id"])


switches(commands, "fault")


@remote(commands, "plan", "The plan that runs, or --stop it.")
def plan(
    to: Remote, stop: Annotated[bool, typer.Option("--stop", help="End the plan and what it switched on.")] = False
) -> None:
    """Show the plan's steps, in ms from its start, and where each is."""
    if stop:
        to.api.send("DELETE", "/v1/plan")
    found = to.api.get("/v1/plan")
    rows = [
        (step["at"], step.get("duration"), step.get("ramp"), step["fault"]["kind"], step["state"], step.get("fired"))
        for step in found["plan"]
    ]
    columns = ("AT", "DURATION", "RAMP", "KIND", "STATE", "FIRED")
    to.show(found, lambda: table(columns, rows, "no plan: mockraft stubs load FILE runs one"))


def _pairs(tree: Mapping[str, Json]) -> str:
    return " ".join(f"{name}={value if isinstance(value, str) else compact(value)}" for name, value in tree.items())


def _parameter(parameter: Mapping[str, Json]) -> str:
    if parameter["required"]:
        return f"{parameter['name']}=*"
    default = parameter["default"]
    return f"{parameter['name']}={default if isinstance(default, str) else compact(default)}"
