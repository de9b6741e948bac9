"""Stubs and their scenarios."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from mockraft.server.admin.access import TheDouble
from mockraft.server.admin.json_bodies import Model, StrictRoute, compact, json_response
from mockraft.server.admin.problems import ProblemError, field_named, pointer_of
from mockraft.server.admin.stub_schema import StubBody
from mockraft.server.double import Double
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.stub import Stub
from pydantic import Field

router = APIRouter(route_class=StrictRoute)

StubId = Annotated[str, Path(alias="stubId", description="Id of the stub.")]
ScenarioName = Annotated[str, Path(alias="name", description="Name of the scenario.")]


class Stubs(Model):
    """Stubs, in the order in which they are asked."""

    stubs: list[StubBody]


class StubSwitch(Model):
    """What may be changed of a stub that goes on counting."""

    enabled: bool


class Release(Model):
    """Who is answered again; everybody who is blackholed when nobody is named."""

    client_id: str | None = None
    connection: int | None = None


class Released(Model):
    """How many were released."""

    released: int


class Scenario(Model):
    """A scenario and the state that it is in."""

    name: str
    state: str


class Scenarios(Model):
    """All scenarios."""

    scenarios: list[Scenario]


class ScenarioState(Model):
    """The state to put a scenario into."""

    state: str = Field(examples=["Started"])


@router.get("/v1/stubs", tags=["stubs"], response_model=Stubs)
async def list_stubs(request: Request, double: TheDouble) -> Response:
    """The stubs with their counts, in the order in which they are asked."""
    return json_response(request, {"stubs": [stub.to_json() for stub in double.script.rack.stubs]})


@router.get("/v1/stubs/unused", tags=["stubs"], response_model=Stubs)
async def list_unused_stubs(request: Request, double: TheDouble) -> Response:
    """The stubs that are switched on and have never served."""
    return json_response(request, {"stubs": [stub.to_json() for stub in double.script.rack.unused()]})


@router.post("/v1/stubs", tags=["stubs"], status_code=201, response_model=StubBody)
async def add_stub(body: StubBody, double: TheDouble) -> Response:
    """Put a stub in the way; gives it as it is, with its id."""
    return _one(_add(double, _read(body)), 201)


@router.post("/v1/stubs/import", tags=["stubs"], status_code=201, response_model=Stubs)
async def import_stubs(body: Stubs, double: TheDouble) -> Response:
    """Add several stubs, all of them or none."""
    read = [_read(each, "stubs", index) for index, each in enumerate(body.stubs)]
    added: list[Stub] = []
    try:
        for index, stub in enumerate(read):
            added.append(_add(double, stub, "stubs", index))
    except ProblemError:
        for stub in added:
            double.script.rack.remove(stub)
        raise
    return Response(compact({"stubs": [stub.to_json() for stub in added]}), 201, media_type="application/json")


@router.delete("/v1/stubs", tags=["stubs"], status_code=204)
async def remove_all_stubs(double: TheDouble) -> None:
    """Take every stub away; whom they blackholed is answered again."""
    for stub in double.script.rack.stubs:
        double.script.rack.remove(stub)


@router.post("/v1/stubs/release", tags=["stubs"])
async def release(body: Release, double: TheDouble) -> Released:
    """Answer again who is blackholed."""
    return Released(released=double.script.rack.release(client_id=body.client_id, connection=body.connection))


@router.get("/v1/stubs/{stubId}", tags=["stubs"], response_model=StubBody)
async def get_stub(stub_id: StubId, double: TheDouble) -> Response:
    """One stub with its counts."""
    return _one(_live(double, stub_id))


@router.put("/v1/stubs/{stubId}", tags=["stubs"], response_model=StubBody)
async def replace_stub(stub_id: StubId, body: StubBody, double: TheDouble) -> Response:
    """Put another stub in the place of one; it counts from 0."""
    _live(double, stub_id)
    stub = _read(body)
    if stub.id not in ("", stub_id):
        raise ProblemError(409, f"the stub says id {stub.id!r}, the path {stub_id!r}", pointer="#/id")
    return _one(double.script.rack.replace(stub_id, stub))


@router.patch("/v1/stubs/{stubId}", tags=["stubs"], response_model=StubBody)
async def switch_stub(stub_id: StubId, body: StubSwitch, double: TheDouble) -> Response:
    """Switch a stub on or off; its counts stay."""
    _live(double, stub_id)
    return _one(double.script.rack.enable(stub_id, body.enabled))


@router.delete("/v1/stubs/{stubId}", tags=["stubs"], status_code=204)
async def remove_stub(stub_id: StubId, double: TheDouble) -> None:
    """Take a stub away."""
    double.script.rack.remove(_live(double, stub_id))


@router.get("/v1/scenarios", tags=["scenarios"])
async def list_scenarios(double: TheDouble) -> Scenarios:
    """The scenarios that stubs are part of, and their states."""
    found = double.script.rack.scenarios
    return Scenarios(scenarios=[Scenario(name=name, state=state) for name, state in found.items()])


@router.put("/v1/scenarios/{name}", tags=["scenarios"])
async def set_scenario(name: ScenarioName, body: ScenarioState, double: TheDouble) -> Scenario:
    """Put a scenario into a state."""
    try:
        double.script.rack.set_scenario(name, body.state)
    except KeyError as error:
        raise ProblemError(404, str(error.args[0]), parameter="name") from error
    return Scenario(name=name, state=body.state)


@router.post("/v1/scenarios/reset", tags=["scenarios"], status_code=204)
async def reset_scenarios(double: TheDouble) -> None:
    """Put every scenario back to where it began, `Started`."""
    double.script.rack.reset_scenarios()


def _read(body: StubBody, *prefix: str | int) -> Stub:
    with field_named(*prefix):
        return Stub.from_json(body.root)


def _add(double: Double, stub: Stub, *prefix: str | int) -> Stub:
    try:
        return double.script.rack.add(stub)
    except StubError as taken:
        pointer = pointer_of("id", prefix)
        raise ProblemError(409, f"{taken.what}: PUT replaces it", pointer=pointer) from taken


def _live(double: Double, stub_id: str) -> Stub:
    try:
        return double.script.rack.get(stub_id)
    except KeyError as error:
        raise ProblemError(404, str(error.args[0]), parameter="stubId") from error


def _one(stub: Stub, status: Literal[200, 201] = 200) -> Response:
    return Response(compact(stub.to_json()), status, media_type="application/json")
