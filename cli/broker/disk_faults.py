"""The options of `mockraft broker` that break its disks: what is to happen to which directory, and when."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from mockraft.brokers.lifecycle import BrokerState
from mockraft.cli.broker.options import DiskFaultOptions
from mockraft.kafka_api.options import OptionError

if TYPE_CHECKING:
    from mockraft.brokers.broker import SimulatedBroker

KINDS = tuple(each.name for each in fields(DiskFaultOptions))
_WITH_VALUE = {"slow": "DIR=MS, such as /data/d1=250", "flaky": "DIR=P, such as /data/d1=0.01"}


class DiskFault(NamedTuple):
    """One thing that happens to a directory (or a file), `after_s` seconds after the broker runs."""

    kind: str
    path: str
    value: float
    after_s: float


def faults_of(options: DiskFaultOptions) -> list[DiskFault]:
    """Parse the options, in the order of time. OptionError names the option."""
    found = [_fault(kind, text) for kind in KINDS for text in getattr(options, kind) or ()]
    return sorted(found, key=lambda fault: fault.after_s)


def check(faults: Sequence[DiskFault], log_dirs: Sequence[str], metadata_log_dir: str | None = None) -> None:
    """Check that each is about one of these directories. OptionError names the option and the directories."""
    if metadata_log_dir is not None:
        log_dirs = [*log_dirs, metadata_log_dir]
    for fault in faults:
        within = any(fault.path == path or fault.path.startswith(f"{path}{os.sep}") for path in log_dirs)
        if fault.path not in log_dirs and not (fault.kind == "corrupt" and within):
            raise _bad(fault.kind, f"{fault.path} is none of the log directories: {', '.join(log_dirs)}")


async def carry_out(broker: SimulatedBroker, faults: Sequence[DiskFault], seed: int) -> None:
    """Do all of it when its time comes, with a line for each."""
    try:
        await broker.wait_until(BrokerState.RUNNING, broker.config.registration_timeout_ms)
    except (RuntimeError, TimeoutError):
        return
    began_s = asyncio.get_running_loop().time()
    for fault in faults:
        await asyncio.sleep(began_s + fault.after_s - asyncio.get_running_loop().time())
        try:
            _apply(broker, fault, seed)
            outcome = ""
        except (OSError, ValueError) as error:
            outcome = f": not done, {error}"
        print(f"broker {broker.config.broker_id}: {_option(fault.kind)} {fault.path}{outcome}")


def _apply(broker: SimulatedBroker, fault: DiskFault, seed: int) -> None:
    match fault.kind:
        case "fail_log_dir":
            broker.fail_log_dir(fault.path)
        case "fill":
            broker.fill_log_dir(fault.path)
        case "slow":
            broker.slow_log_dir(fault.path, fault.value)
        case "flaky":
            broker.flaky_log_dir(fault.path, fault.value, seed)
        case "corrupt":
            broker.corrupt(fault.path)
        case _:
            broker.heal_log_dir(fault.path)


def _fault(kind: str, text: str) -> DiskFault:
    path, after_s = text, 0.0
    before, at, seconds = text.rpartition("@")
    if at and _number(seconds) is not None:
        path, after_s = before, _number(seconds) or 0.0
    value: float | None = 0.0
    if kind in _WITH_VALUE:
        path, _, number = path.rpartition("=")
        value = _number(number)
        if not path or value is None or (kind == "flaky" and value > 1):
            raise _bad(kind, f"{text!r} is not {_WITH_VALUE[kind]}, with @SECONDS behind it if you like")
    if not path:
        raise _bad(kind, f"{text!r} names no directory")
    return DiskFault(kind, os.path.abspath(path), value or 0.0, after_s)


def _number(text: str) -> float | None:
    """A number that is not negative, None for anything else."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _option(kind: str) -> str:
    return f"--{kind.replace('_', '-')}"


def _bad(kind: str, about: str) -> OptionError:
    return OptionError(about, _option(kind))
