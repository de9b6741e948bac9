"""Conformance suite: named cases of how Kafka's controller responds and what it writes, for any controller.

A case is one sentence about a controller, with its source in Kafka (a test class, a KIP, or the class that has the
rule) and a coroutine that checks it. The suite talks to a controller over the network only, as brokers do, so that it
runs unchanged against mockraft, Kafka's own controller or any other implementation; it never imports `server`.

- `cases`: one module per area, for example `registration`; `suite` lists the areas in order. `case` registers a case
    with its rank and the levels of metadata.version at which it holds.
- `world`: one case's view of the controller. It registers brokers, creates topics, sends requests as JSON trees, and
    expects responses (`expectation`) and records (`records`). It removes what the case created (`cleanup`).
- `log`: the metadata log, read by Fetch as any replica reads it. Cases run in parallel against one controller: each
    takes names and ids of its own (`identities`) and looks only at the records about these. Cases that read or change
    shared state run alone; disruptive ones, which make Kafka's controller resign, run last and on request.
- `runner` runs the cases, `verdicts` holds the results, `reports` present them, and `comparison` lists the cases in
    which two runs differ.
- `known_differences.toml` lists all intended deviations of mockraft from Kafka; `baselines` holds runs against Kafka.
- `fuzz` sends random requests to two controllers and compares responses and records.

Case names are stable: reports, baselines and known differences refer to them.
"""

from mockraft.conformance.runner import run
from mockraft.conformance.target import CannotConnectError
from mockraft.conformance.verdicts import Outcome, Run, Verdict

__all__ = ["CannotConnectError", "Outcome", "Run", "Verdict", "run"]
