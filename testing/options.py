"""Keyword options of `Controller`, `Quorum` and simulated brokers, for type checkers; the configs check the values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mockraft.testing.config_fields import BrokerConfigFields, ControllerConfigFields

if TYPE_CHECKING:
    from mockraft.kafka_api.clock import Clock
    from mockraft.server.stubs.stub import Stub
    from mockraft.twin.history import History, Point


TEST_HEARTBEAT_INTERVAL_MS = 100
"""Heartbeat interval of brokers in tests, in real time; they wait as long after a refused request (Kafka: 2,000)."""


class ConfigOptions(ControllerConfigFields, total=False):
    """Options that describe the controller: the fields of `ControllerConfig`, proposals and a saved state."""

    profile: str | Iterable[str]
    schemas: str | Path | Iterable[str | Path]
    state: str | Path | None
    twin_of: str | Path | History | None
    twin_at: Point
    as_version: str | None


class ControllerOptions(ConfigOptions, total=False):
    """Options of `Controller` and `Quorum`: those of the controller, and those of the test and its brokers."""

    clock: Clock | Literal["virtual"] | None
    brokers: int
    brokers_port: int
    twin_brokers: Literal["live", "all"] | None
    broker_heartbeat_interval_ms: int | None
    strict: bool
    assert_all_used: bool
    stubs: str | Path | Iterable[Stub]
    admin_port: int | None


class BrokerOptions(BrokerConfigFields, total=False):
    """Options of `SimulatedBroker.joining`: its listener and log directories, and the fields of `BrokerConfig`."""

    log_dir_paths: tuple[str, ...]
    host: str
    port: int | None
    seed: int | None
    log_dirs: Sequence[str | os.PathLike[str]]
    metadata_log_dir: str | os.PathLike[str] | None
    format_missing: bool


class StartOptions(BrokerOptions, total=False):
    """Options of `start_broker`."""

    wait: Literal["registered", "running"] | None
    timeout_s: float
