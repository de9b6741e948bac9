"""Health and settings."""

from __future__ import annotations

from importlib import metadata
from typing import Literal

from fastapi import APIRouter
from mockraft.server.admin.access import TheDouble
from mockraft.server.admin.json_bodies import Model, StrictRoute
from mockraft.server.double import Double
from pydantic import Field

router = APIRouter(route_class=StrictRoute, tags=["system"])


class BrokerCounts(Model):
    """How many brokers are registered."""

    total: int
    fenced: int


class Health(Model):
    """What runs, and how it fares."""

    status: Literal["up"] = "up"
    version: str = Field(description="mockraft's version.")
    cluster_id: str
    bootstrap: str = Field(description="controller.quorum.bootstrap.servers for brokers.", examples=["127.0.0.1:9093"])
    nodes: list[int] = Field(description="Ids of the controllers that run.", examples=[[3000]])
    brokers: BrokerCounts
    requests: int = Field(description="Requests answered since the start.")
    failures: int = Field(description="Requests and ticks in which mockraft itself broke; see `failure` of requests.")


class Settings(Model):
    """What may be changed while the controller runs."""

    journal_enabled: bool = Field(description="Whether requests are kept.")
    journal_entries_max: int = Field(description="How many requests are kept, the newest.", ge=1, le=10_000_000)


class SettingsChange(Model):
    """The settings to change; the others stay."""

    journal_enabled: bool | None = None
    journal_entries_max: int | None = Field(default=None, ge=1, le=10_000_000)


@router.get("/v1/health")
async def health(double: TheDouble) -> Health:
    """Say that it runs. Needs no token: for health checks."""
    nodes = double.nodes()
    first = next(iter(nodes.values()))
    brokers = first.controller.image.cluster.brokers
    return Health(
        version=metadata.version("mockraft"),
        cluster_id=first.config.cluster_id,
        bootstrap=",".join(each.bootstrap for each in nodes.values()),
        nodes=list(nodes),
        brokers=BrokerCounts(total=len(brokers), fenced=sum(1 for each in brokers.values() if each.fenced)),
        requests=sum(journal.exchanges_by_api.total() for journal in double.journals.values()),
        failures=sum(journal.failures for journal in double.journals.values()),
    )


@router.get("/v1/settings")
async def settings(double: TheDouble) -> Settings:
    """The settings as they are."""
    return _settings(double)


@router.patch("/v1/settings")
async def change_settings(change: SettingsChange, double: TheDouble) -> Settings:
    """Change some settings; gives them all."""
    for journal in double.journals.values():
        if change.journal_enabled is not None:
            journal.enabled = change.journal_enabled
        if change.journal_entries_max is not None:
            journal.entries_max = change.journal_entries_max
    return _settings(double)


def _settings(double: Double) -> Settings:
    journal = next(iter(double.journals.values()))
    return Settings(
        journal_enabled=journal.enabled,
        journal_entries_max=journal.entries_max,
    )
