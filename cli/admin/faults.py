"""`mockraft faults`: what goes wrong on connections and in the controller, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from mockraft.cli.admin.remote import Remote, RemoteCommands, assignments, compact, given, switches, table
from mockraft.kafka_api.options import Option, argument, option, required
from mockraft.server.stubs.faults.presets import KINDS

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

ABOUT = """Faults by name: of connections' bytes, and of the controller itself. Without a command: list them.

  mockraft faults
  mockraft faults kinds                                   the kinds of faults, and their parameters
  mockraft faults add latency latencyMs=200 jitterMs=50
  mockraft faults add latency latencyMs=900 --match brokerId=1 --toxicity 0.5 --seed 7
  mockraft faults off latency-1 · on latency-1 · remove latency-1 · remove --all
  mockraft faults plan                                    the timed plan that runs, step by step
"""


def _kinds() -> Iterable[str]:
    return KINDS


commands = RemoteCommands("faults", ABOUT)


@commands.add()
def listed(
    to: Remote, unfired: Annotated[bool, Option(flags=("--unfired",), help="Those that met nothing.")] = False
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


@commands.add("kinds")
def kinds(to: Remote) -> None:
    """List the kinds of faults with their parameters; * marks required ones."""
    found = to.api.get("/v1/faults/kinds")
    rows = [(kind["name"], " ".join(map(_parameter, kind["parameters"])), kind["summary"]) for kind in found["kinds"]]
    to.show(found, lambda: table(("KIND", "PARAMETERS", "WHAT IT DOES"), rows, "no kinds"))


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """A fault: its kind with parameters, and which connections it meets."""

    kind: str = required(is_argument=True, help="One of `mockraft faults kinds`.", completes=_kinds)
    parameters: list[str] | None = argument(None, metavar="NAME=VALUE...", help="Parameters of the fault.")
    match: list[str] | None = option(
        None, metavar="NAME=VALUE", help="Only connections of brokerId=1, clientId=…, node=…"
    )
    toxicity: float | None = option(None, help="Share of connections that it meets, 0 to 1.")
    seed: int | None = option(None, help="Seed of its random choices.")
    off: bool = option(False, help="Add it switched off.")
    id: str | None = option(None, help="Its id; made when left out.")


@commands.add("add")
def add(to: Remote, options: AddOptions) -> None:
    """Switch a new fault on; print its id."""
    match = assignments(options.match or (), "--match") or None
    fault = given(id=options.id, toxicity=options.toxicity, seed=options.seed, match=match)
    params = assignments(options.parameters or (), "NAME=VALUE")
    fault |= {"kind": options.kind, "enabled": not options.off, "params": params}
    made = to.api.send("POST", "/v1/faults", fault)
    to.show(made, made["id"])


switches(commands, "fault")


@commands.add("plan")
def plan(
    to: Remote, stop: Annotated[bool, Option(flags=("--stop",), help="End the plan and what it switched on.")] = False
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


COMMANDS = {"faults": commands.command}
