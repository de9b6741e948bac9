"""The system's limits for a fleet: files that a process may open, ports for connections from one address, memory."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

FILES_KEPT = 64
"""Files of a process that are not connections of brokers."""
CONNECTIONS_SHARING, CONNECTIONS_OWN = 1, 3
"""Connections of a broker: for heartbeats, and for its own replication to a bootstrap server and to the leader."""
OWN_REPLICATION_BROKERS_MAX = 100
"""Largest number of brokers started together that each replicate for themselves by default, as Kafka's do."""
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def files_max() -> int | None:
    """Return how many files a process of a fleet may open, None for any number."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def ports_max() -> int | None:
    """Return how many connections to one listener this machine may have; None if the system does not tell."""
    try:
        first, last = map(int, _PORT_RANGE.read_text().split())
    except (OSError, ValueError):
        return None
    return last - first + 1


def shortage(brokers: int, processes: int, *, shares_replication: bool) -> str | None:
    """Return why so many brokers cannot be connected at once, and what to do; None if they can."""
    each = CONNECTIONS_SHARING if shares_replication else CONNECTIONS_OWN
    files, ports = files_max(), ports_max()
    if ports is not None and brokers * each > ports:
        return (
            f"{brokers:,} brokers need {brokers * each:,} connections to the controller, and the system has {ports:,} "
            "ports for them: widen the range (sysctl -w net.ipv4.ip_local_port_range='1024 65535'), or run a part of "
            "the brokers on another machine (--first-id)"
        )
    if files is not None and -(-brokers // processes) * each > files - FILES_KEPT:
        enough = -(-brokers * each // (files - FILES_KEPT)) if files > FILES_KEPT else brokers
        return (
            f"{brokers:,} brokers in {processes:,} processes need {-(-brokers // processes) * each:,} connections in "
            f"each, and a process may open {files:,} files: raise the limit (ulimit -Hn), or give --processes {enough}"
        )
    return None


_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return its resident memory; its peak where the system does not report the current value."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def allow_many_files() -> None:
    """Raise this process's limit of open files to the system's maximum, as a JVM does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20 if hard == resource.RLIM_INFINITY else hard, hard))
