"""Operations on stubs and their scenarios."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from mockraft.server.admin import stub_schema
from mockraft.server.admin.access import TheDouble
from mockraft.server.admin.json_bodies import Model, StrictRoute, json_response, json_text
from mockraft.server.admin.problems import ProblemError, field_named, known, pointer_of
from mockraft.server.admin.stub_schema import NewStub
from mockraft.server.double import Double
from mockraft.server.stubs.errors import StubError
from mockraft.server.stubs.stub import Stub
from pydantic import Field

router = APIRouter(route_class=StrictRoute)

StubId = Annotated[str, Path(alias="stubId", description="Id of the stub.")]
ScenarioName = Annotated[str, Path(alias="name", description="Name of the scenario.")]


class Stubs(Model):
    """Stubs, in order of precedence."""

    stubs: list[stub_schema.Stub]


class NewStubs(Model):
    """Stubs to add."""

    stubs: list[NewStub]


class StubSwitch(Model):
    """Changes of a stub that keep its counts."""

    enabled: bool


class Release(Model):
    """Clients to release; default: all blackholed clients."""

    client_id: str | None = None
    connection: int | None = None


class Released(Model):
    """The number of released clients and connections."""

    released: int


class Scenario(Model):
    """A scenario and its state."""

    name: str
    state: str


class Scenarios(Model):
    """The scenarios that stubs name, each with its state."""

    scenarios: list[Scenario]


class ScenarioState(Model):
    """The state to put a scenario into."""

    state: str = Field(examples=["Started"])


@router.get("/v1/stubs", tags=["stubs"], response_model=Stubs)
async def list_stubs(request: Request, double: TheDouble) -> Response:
    """List the stubs with their counts, in order of precedence; those that faults are made of are not listed."""
    return json_response(request, {"stubs": [stub.to_json() for stub in double.script.stubs.own]})


@router.get("/v1/stubs/unused", tags=["stubs"], response_model=Stubs)
async def list_unused_stubs(request: Request, double: TheDouble) -> Response:
    """List the stubs that are switched on and have never served."""
    return json_response(request, {"stubs": [stub.to_json() for stub in double.script.stubs.unused()]})


@router.post("/v1/stubs", tags=["stubs"], status_code=201, response_model=stub_schema.Stub)
async def add_stub(body: NewStub, double: TheDouble) -> Response:
    """Add a stub; return it with its id."""
    return _one(_add(double, await _read(body)), 201)


@router.post("/v1/stubs/import", tags=["stubs"], status_code=201, response_model=Stubs)
async def import_stubs(body: NewStubs, double: TheDouble) -> Response:
    """Add several stubs, all of them or none."""
    read = [await _read(each, "stubs", index) for index, each in enumerate(body.stubs)]
    added: list[Stub] = []
    try:
        for index, stub in enumerate(read):
            added.append(_add(double, stub, "stubs", index))
    except ProblemError:
        for stub in added:
            double.script.stubs.remove(stub)
        raise
    return json_text({"stubs": [stub.to_json() for stub in added]}, 201)


@router.delete("/v1/stubs", tags=["stubs"], status_code=204)
async def remove_all_stubs(double: TheDouble) -> None:
    """Remove every stub and release the clients they blackholed; faults stay."""
    for stub in double.script.stubs.own:
        double.script.stubs.remove(stub)


@router.post("/v1/stubs/release", tags=["stubs"])
async def release_clients(body: Release, double: TheDouble) -> Released:
    """Release blackholed clients."""
    return Released(released=double.script.stubs.release(client_id=body.client_id, connection=body.connection))


@router.get("/v1/stubs/{stubId}", tags=["stubs"], response_model=stub_schema.Stub)
async def get_stub(stub_id: StubId, double: TheDouble) -> Response:
    """Return a stub with its counts."""
    return _one(_live(double, stub_id))


@router.put("/v1/stubs/{stubId}", tags=["stubs"], response_model=stub_schema.Stub)
async def replace_stub(stub_id: StubId, body: NewStub, double: TheDouble) -> Response:
    """Replace a stub; the new one counts from 0."""
    _live(double, stub_id)
    stub = await _read(body)
    _live(double, stub_id)  # it may have been removed meanwhile
    if stub.id not in ("", stub_id):
        raise ProblemError(409, f"the stub has id {stub.id!r}, the path {stub_id!r}", pointer="#/id")
    return _one(double.script.stubs.replace(stub_id, stub))


@router.patch("/v1/stubs/{stubId}", tags=["stubs"], response_model=stub_schema.Stub)
async def switch_stub(stub_id: StubId, body: StubSwitch, double: TheDouble) -> Response:
    """Switch a stub on or off; its counts stay."""
    _live(double, stub_id)
    return _one(double.script.stubs.enable(stub_id, body.enabled))


@router.delete("/v1/stubs/{stubId}", tags=["stubs"], status_code=204)
async def remove_stub(stub_id: StubId, double: TheDouble) -> None:
    """Remove a stub; clients that it blackholed are answered again."""
    double.script.stubs.remove(_live(double, stub_id))


@router.get("/v1/scenarios", tags=["scenarios"])
async def list_scenarios(double: TheDouble) -> Scenarios:
    """List the scenarios of all stubs, and their states."""
    found = double.script.stubs.scenarios
    return Scenarios(scenarios=[Scenario(name=name, state=state) for name, state in found.items()])


@router.put("/v1/scenarios/{name}", tags=["scenarios"])
async def set_scenario(name: ScenarioName, body: ScenarioState, double: TheDouble) -> Scenario:
    """Put a scenario into a state."""
    with known("name"):
        double.script.stubs.set_scenario(name, body.state)
    return Scenario(name=name, state=body.state)


@router.post("/v1/scenarios/reset", tags=["scenarios"], status_code=204)
async def reset_scenarios(double: TheDouble) -> None:
    """Put every scenario back into its first state, `Started`."""
    double.script.stubs.reset_scenarios()


async def _read(body: NewStub, *prefix: str | int) -> Stub:
    """Make a stub, in a thread: a pattern takes up to 0.1 s, and a body may have thousands."""
    with field_named(*prefix):
        return await asyncio.to_thread(Stub.from_json, body.root)


def _add(double: Double, stub: Stub, *prefix: str | int) -> Stub:
    with field_named(*prefix):
        try:
            return double.script.stubs.add(stub)
        except StubError as taken:
            if taken.field != "id":
                raise
            pointer = pointer_of("id", prefix)
            raise ProblemError(409, f"{taken.what}: PUT replaces it", pointer=pointer) from taken


def _live(double: Double, stub_id: str) -> Stub:
    with known("stubId"):
        return double.script.stubs.get(stub_id)


def _one(stub: Stub, status: Literal[200, 201] = 200) -> Response:
    return json_text(stub.to_json(), status)
