"""Operations on faults, which are switched by hand or by a plan."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from mockraft.server.admin import fault_schema
from mockraft.server.admin.access import TheDouble
from mockraft.server.admin.fault_schema import NewFault
from mockraft.server.admin.json_bodies import Model, StrictRoute, json_response, json_text
from mockraft.server.admin.problems import ProblemError, field_named
from mockraft.server.double import Double
from mockraft.server.stubs.faults.fault import Fault
from mockraft.wire.names import did_you_mean
from pydantic import Field

router = APIRouter(route_class=StrictRoute, tags=["faults"])

FaultId = Annotated[str, Path(alias="faultId", description="Id of the fault.")]


class Faults(Model):
    """Faults, in the order in which they were added."""

    faults: list[fault_schema.Fault]


class FaultChange(Model):
    """Changes of a fault; omitted fields stay as they are."""

    enabled: bool | None = None
    name: str | None = None
    toxicity: float | None = Field(default=None, ge=0, le=1)
    match: dict[str, object] | None = None
    params: dict[str, object] | None = Field(default=None, description="The parameters to change.")


class Parameter(Model):
    """A parameter of a kind of fault."""

    name: str
    type: str
    required: bool
    default: object
    help: str
    choices: list[str] | None = None


class Kind(Model):
    """A kind of fault."""

    name: str
    summary: str
    preset: bool = Field(description="True for a preset of the controller, false for a toxic of connections' bytes.")
    reaction: str = Field(default="", description="Observed reaction of a real broker; for presets.")
    parameters: list[Parameter]


class Kinds(Model):
    """All kinds of faults."""

    kinds: list[Kind]


class Step(Model):
    """A fault that is on from `at` for `duration`, both in milliseconds; over the first `ramp` of them it grows."""

    at: int = Field(default=0, ge=0)
    duration: int | None = Field(default=None, ge=0)
    ramp: int = Field(default=0, ge=0)
    fault: NewFault


class StepNow(Step):
    """A step, and whether it is waiting, on or over."""

    state: str
    fault_id: str | None = None
    fired: int | None = None


class Plan(Model):
    """A timed plan of faults, starting now."""

    plan: list[Step]


class PlanNow(Model):
    """The current plan."""

    plan: list[StepNow]


@contextlib.contextmanager
def _switching() -> Iterator[None]:
    """Turn a ValueError into a 422, and what conflicts with the current state into a 409."""
    try:
        with field_named():
            yield
    except RuntimeError as error:
        raise ProblemError(409, str(error)) from error


@router.get("/v1/faults/kinds", response_model=Kinds)
async def list_kinds(request: Request, double: TheDouble) -> Response:
    """List the kinds of faults and their parameters."""
    return json_response(request, {"kinds": [kind.to_json() for kind in double.script.faults.kinds.values()]})


@router.get("/v1/faults", response_model=Faults)
async def list_faults(request: Request, double: TheDouble) -> Response:
    """List the faults, switched on or off, and how often they took effect."""
    return json_response(request, {"faults": [fault.to_json() for fault in double.script.faults.all]})


@router.get("/v1/faults/unfired", response_model=Faults)
async def list_unfired_faults(request: Request, double: TheDouble) -> Response:
    """List the faults that never took effect so far."""
    return json_response(request, {"faults": [fault.to_json() for fault in double.script.faults.unfired()]})


@router.post("/v1/faults", status_code=201, response_model=fault_schema.Fault)
async def add_fault(body: NewFault, double: TheDouble) -> Response:
    """Add a fault, switched on unless `enabled` is false."""
    faults = double.script.faults
    if any(fault.id == body.root.get("id") for fault in faults.all):
        raise ProblemError(409, f"there is a fault {body.root['id']!r} already", pointer="#/id")
    with _switching():
        return _one(faults.add_json(body.root), 201)


@router.delete("/v1/faults", status_code=204)
async def remove_all_faults(double: TheDouble) -> None:
    """Switch off and remove every fault, and the plan."""
    double.script.faults.reset()


@router.get("/v1/faults/{faultId}", response_model=fault_schema.Fault)
async def get_fault(fault_id: FaultId, double: TheDouble) -> Response:
    """Return a fault, with how often it took effect."""
    return _one(_known(double, fault_id))


@router.patch("/v1/faults/{faultId}", response_model=fault_schema.Fault)
async def change_fault(fault_id: FaultId, body: FaultChange, double: TheDouble) -> Response:
    """Switch a fault on or off, or change its fields."""
    _known(double, fault_id)
    with _switching():
        return _one(double.script.faults.change_json(fault_id, body.model_dump(by_alias=True, exclude_none=True)))


@router.delete("/v1/faults/{faultId}", status_code=204)
async def remove_fault(fault_id: FaultId, double: TheDouble) -> None:
    """Switch off and remove a fault."""
    double.script.faults.remove(_known(double, fault_id).id)


@router.get("/v1/plan", response_model=PlanNow)
async def get_plan(request: Request, double: TheDouble) -> Response:
    """Return the plan's steps, each with its state."""
    return json_response(request, {"plan": double.script.faults.plan_json()})


@router.post("/v1/plan", status_code=201, response_model=PlanNow)
async def run_plan(body: Plan, double: TheDouble) -> Response:
    """Switch faults by a plan from now on, by the controller's clock; it replaces the current plan."""
    with _switching():
        double.script.faults.run([step.model_dump(by_alias=True, exclude_none=True) for step in body.plan])
    return json_text({"plan": double.script.faults.plan_json()}, 201)


@router.delete("/v1/plan", status_code=204)
async def stop_plan(double: TheDouble) -> None:
    """End the plan and switch off its faults."""
    double.script.faults.stop_plan()


def _known(double: Double, fault_id: str) -> Fault:
    try:
        return double.script.faults.get(fault_id)
    except KeyError as error:
        hint = did_you_mean(fault_id, (fault.id for fault in double.script.faults.all))
        raise ProblemError(404, f"there is no fault {fault_id!r}; {hint}", parameter="faultId") from error


def _one(fault: Fault, status: int = 200) -> Response:
    return json_text(fault.to_json(), status)
