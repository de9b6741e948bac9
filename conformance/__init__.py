"""Conformance: named cases of what Kafka's 4.3.1 controller answers and writes, run against any controller."""

from mockraft.conformance.runner import run
from mockraft.conformance.target import CannotConnectError
from mockraft.conformance.verdicts import Outcome, Run, Verdict

__all__ = ["CannotConnectError", "Outcome", "Run", "Verdict", "run"]
