"""Operations on health, settings, the clock, restart and reset."""

from __future__ import annotations

import asyncio
from importlib import metadata
from typing import Literal

from fastapi import APIRouter, Request, Response
from mockraft.kafka_api.clock import VirtualClock
from mockraft.releases import METADATA_VERSION
from mockraft.server.admin.access import TheDouble
from mockraft.server.admin.json_bodies import Model, StrictRoute
from mockraft.server.admin.metrics import CONTENT_TYPE
from mockraft.server.admin.problems import ProblemError, commanding
from mockraft.server.double import Double
from mockraft.server.running import NothingRunsError, node_failures
from pydantic import Field

router = APIRouter(route_class=StrictRoute, tags=["system"])

ADVANCE_STEP_MS = 5_000
"""Steps of the virtual clock, between which other tasks run."""


class BrokerCounts(Model):
    """Numbers of registered brokers."""

    total: int
    fenced: int


class Health(Model):
    """Health of the controller or quorum."""

    status: Literal["up"] = Field(default="up", description="Records can be committed; otherwise the answer is 503.")
    version: str = Field(description="mockraft's version.")
    release: str = Field(description="The Kafka release whose controller this is.")
    metadata_version: int | None = Field(description="Level of metadata.version; null while unknown.", examples=[33])
    cluster_id: str
    bootstrap: str = Field(description="controller.quorum.bootstrap.servers for brokers.", examples=["127.0.0.1:9093"])
    nodes: list[int] = Field(description="Ids of the running controllers.", examples=[[3000]])
    failed_nodes: list[str] = Field(
        description="Those that cannot continue, each with the reason; the others can still commit.", examples=[[]]
    )
    brokers: BrokerCounts
    requests: int = Field(description="Requests answered since the start.")
    failures: int = Field(
        description="Failures of mockraft itself in requests and periodic work; see `failure` of requests."
    )
    unmatched: int = Field(description="Requests in the journal that strict stubs did not expect.")
    stubs: int = Field(description="Stubs that are switched on.")
    faults: int = Field(description="Faults that are switched on.")
    leader_id: int | None = Field(description="The active controller.")
    epoch: int = Field(description="Its epoch.")
    now_ms: int = Field(description="The controller's clock, milliseconds since 1970.")


class Settings(Model):
    """Settings that can be changed at run time."""

    strict: bool = Field(
        description="If true, a request that no stub matches is marked `unmatched`, except the APIs that every broker "
        "and controller uses. The controller answers it as usual."
    )
    journal_enabled: bool = Field(description="True if requests are kept.")
    journal_entries_max: int = Field(description="Maximum number of requests kept.", ge=1, le=10_000_000)


class SettingsChange(Model):
    """The settings to change; the others stay."""

    strict: bool | None = None
    journal_enabled: bool | None = None
    journal_entries_max: int | None = Field(default=None, ge=1, le=10_000_000)


class ClockNow(Model):
    """The controller's time, milliseconds since 1970."""

    now_ms: int
    virtual: bool = Field(description="True if it only moves when it is advanced.")


class Advance(Model):
    """The time to add to the clock, in milliseconds."""

    ms: int = Field(ge=0, le=86_400_000, examples=[9_000])


class Reset(Model):
    """Further parts to reset."""

    state: bool = Field(default=False, description="Also start with a new log; brokers must be restarted too.")


@router.get("/v1/health")
async def get_health(double: TheDouble) -> Health:
    """Report health; 503 with the reason while nothing can be committed. Needs no token, for health checks."""
    nodes = double.nodes()
    if not nodes:
        raise NothingRunsError
    first = next(iter(nodes.values()))
    brokers = first.controller.image.cluster.brokers
    if (reason := double.failure) is not None:
        raise ProblemError(503, reason)
    quorum = double.state.quorum()
    return Health(
        version=metadata.version("mockraft"),
        release=first.controller.release.name,
        metadata_version=double.state.features().get(METADATA_VERSION),
        cluster_id=first.config.cluster_id,
        bootstrap=",".join(each.bootstrap for each in nodes.values()),
        nodes=list(nodes),
        failed_nodes=node_failures(nodes),
        brokers=BrokerCounts(total=len(brokers), fenced=sum(1 for each in brokers.values() if each.fenced)),
        requests=sum(sum(journal.exchanges_by_api.values()) for journal in double.journals.values()),
        failures=sum(journal.failures for journal in double.journals.values()),
        unmatched=sum(len(journal.unmatched()) for journal in double.journals.values()),
        stubs=sum(each.enabled for each in double.script.stubs.own),
        faults=len(double.script.faults.active),
        leader_id=quorum.leader_id,
        epoch=quorum.epoch,
        now_ms=double.now_ms,
    )


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
async def get_metrics(request: Request) -> Response:
    """Return metrics for Prometheus, under the names of Kafka's controllers."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE)


@router.get("/v1/settings")
async def get_settings(double: TheDouble) -> Settings:
    """Return the current settings."""
    return _settings(double)


@router.patch("/v1/settings")
async def change_settings(change: SettingsChange, double: TheDouble) -> Settings:
    """Change some settings; return all of them."""
    if change.strict is not None:
        double.script.stubs.strict = change.strict
    for journal in double.journals.values():
        if change.journal_enabled is not None:
            journal.enabled = change.journal_enabled
        if change.journal_entries_max is not None:
            journal.entries_max = change.journal_entries_max
    return _settings(double)


@router.get("/v1/clock")
async def get_clock(double: TheDouble) -> ClockNow:
    """Return the controller's time."""
    return _clock(double)


@router.post("/v1/clock/advance")
async def advance_clock(body: Advance, double: TheDouble) -> ClockNow:
    """Advance a virtual clock (`mockraft serve --virtual-clock`): sessions end and periodic work runs, at its time."""
    left = body.ms
    try:
        while left:
            double.advance(step := min(left, ADVANCE_STEP_MS))
            left -= step
            await asyncio.sleep(0)
    except ValueError as error:
        raise ProblemError(409, str(error)) from error
    return _clock(double)


@router.post("/v1/restart", status_code=204)
async def restart_controller(double: TheDouble) -> None:
    """Restart the controller in place, with its log; connections break. Not for a node of a quorum."""
    with commanding():
        double.restart_in_place()


@router.post("/v1/reset", status_code=204)
async def reset(double: TheDouble, body: Reset | None = None) -> None:
    """Remove stubs, faults, scenarios and the journal's entries, between two tests."""
    with commanding():
        double.reset(state=body is not None and body.state)
        double.strict = False


def _clock(double: Double) -> ClockNow:
    virtual = isinstance(double.clock, VirtualClock)
    return ClockNow(now_ms=double.now_ms, virtual=virtual)


def _settings(double: Double) -> Settings:
    journal = next(iter(double.journals.values()))
    return Settings(
        strict=double.script.stubs.strict, journal_enabled=journal.enabled, journal_entries_max=journal.entries_max
    )
