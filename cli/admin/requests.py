"""`mockraft requests`: what brokers ask a running controller, and what it answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from mockraft.cli.admin.remote import Remote, RemoteCommands, assignments, given, table
from mockraft.cli.exit_codes import ExitCode
from mockraft.files.private_files import write_private
from mockraft.kafka_api.options import Milliseconds, Option, OptionError, argument, option
from mockraft.wire import api_keys
from mockraft.wire.printable import printable_line

ABOUT = """Requests as the journal has them. Without a command: the newest.

  mockraft requests --api BrokerHeartbeat --broker-id 1
  mockraft requests --follow                              as they come; Ctrl-C ends
  mockraft requests --since 10s                           of the last ten seconds
  mockraft requests --search my-topic                     in the decoded bodies
  mockraft requests --closed                              closed connections: failed logins, refused bytes
  mockraft requests show 17                               with its bodies, or a closed connection
  mockraft requests verify BrokerRegistration --count 3 --within-ms 5000
  mockraft requests save run.pcapng · save run.jsonl      for Wireshark, or a line each
"""

_EXCHANGE = ("ID", "TIME", "BROKER", "CLIENT", "CONNECTION", "REQUEST", "ANSWER", "MS")
_CLOSED = ("ID", "TIME", "CONNECTION", "PEER", "BY", "REASON")
_LIMIT = 50


def api_names() -> list[str]:
    """Return the names of all APIs, for completion."""
    return sorted(api_keys.name(key) for key in vars(api_keys).values() if type(key) is int)


commands = RemoteCommands("requests", ABOUT)


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """Options that choose requests."""

    api: list[str] | None = option(None, metavar="API", help="Only this API; repeat for more.", completes=api_names)
    broker_id: int | None = option(None, help="Only this broker's.")
    client_id: str | None = option(None, help="Only this client's.")
    connection: int | None = option(None, help="Only this connection's.")
    node: int | None = option(None, help="Only this node's of a quorum.")
    search: str | None = option(None, metavar="TEXT", help="Only those whose JSON has this text.")
    since: Milliseconds | None = option(None, help="Only those of the last 10s, 2m, 1h.")
    after_id: int | None = option(None, lowest=0, metavar="ID", help="Only those behind this one.")
    limit: int | None = option(
        None, lowest=1, metavar="N", help=f"So many, {_LIMIT} by default; with --follow the end after so many."
    )
    follow: bool = option(False, "--follow", "-f", help="Go on as they come.")
    closed: bool = option(False, help="Closed connections with the reason, failed logins among them, instead.")

    def query(self) -> dict[str, object]:
        """Return what the API takes to choose requests."""
        return {
            "api": self.api,
            "clientId": self.client_id,
            "brokerId": self.broker_id,
            "connection": self.connection,
            "node": self.node,
            "maxAgeMs": self.since,
            "afterId": self.after_id,
        }


@commands.add()
def listed(to: Remote, options: ListOptions) -> None:
    """List the newest requests, or follow them."""
    if options.closed:
        _list_closed(to, options)
    elif options.follow:
        if options.search is not None:
            raise OptionError("--search looks back, not forward: leave it or --follow off")
        _follow(to, options)
    else:
        found = to.api.get("/v1/requests", **options.query(), q=options.search, limit=options.limit or _LIMIT)
        to.show(found, lambda: table(_EXCHANGE, map(_row, found["requests"]), "no requests"))


@commands.add("show")
def show(
    to: Remote, request_id: Annotated[int, Option(is_argument=True, metavar="ID", help="Number of the request.")]
) -> None:
    """Print one request with its decoded bodies, or another entry of the journal with that number."""
    found = to.api.get(f"/v1/entries/{request_id}")
    print(json.dumps(found, indent=2))


@commands.add("unmatched")
def unmatched(to: Remote) -> None:
    """List the newest requests that a strict script did not expect."""
    found = to.api.get("/v1/requests/unmatched")
    to.show(found, lambda: table(_EXCHANGE, map(_row, found["requests"]), "none was unexpected"))


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """Requests that there have to be, and how many."""

    api: str | None = argument(None, metavar="API", help="Name of the API; any when left out.", completes=api_names)
    broker_id: int | None = option(None, help="Only this broker's.")
    where: list[str] | None = option(
        None, metavar="FIELD=VALUE", help='A field of the request; VALUE may be {"gte": 5}.'
    )
    count: int | None = option(None, help="Exactly so many.")
    at_least: int | None = option(None, help="Default: 1.")
    at_most: int | None = option(None, help="No more than so many.")
    within_ms: int = option(0, help="How long they may take to come.")


@commands.add("verify")
def verify(to: Remote, options: VerifyOptions) -> None:
    """Check that there were so many requests; exit code 1 and a report where not."""
    where = assignments(options.where or (), "--where") or None
    match = given(api=options.api, brokerId=options.broker_id, where=where)
    body = given(
        count=options.count, atLeast=options.at_least, atMost=options.at_most, withinMs=options.within_ms, match=match
    )
    found = to.api.send("POST", "/v1/requests/verify", body)
    to.show(found, f"{found['count']} requests" if found["verified"] else found["report"])
    if not found["verified"]:
        raise SystemExit(ExitCode.FAILED)


@commands.add("save")
def save(
    to: Remote, file: Annotated[Path, Option(is_argument=True, help="FILE.pcapng or FILE.jsonl; overwritten.")]
) -> None:
    """Write the journal into a file: a capture that Wireshark opens, or a JSON text a line."""
    if file.suffix not in (".pcapng", ".jsonl"):
        raise OptionError(f"{file}: its name ends in .pcapng or .jsonl")
    data = to.api.read("GET", f"/v1/requests{file.suffix}")
    write_private(file, data)
    to.show({"file": str(file), "bytes": len(data)}, f"{file}: {len(data):,} bytes")


@commands.add("clear")
def clear(to: Remote) -> None:
    """Forget all requests, and the counts of them."""
    to.api.send("DELETE", "/v1/requests")
    to.show(None, "the journal is empty")


def _list_closed(to: Remote, options: ListOptions) -> None:
    others = (options.api, options.broker_id, options.client_id, options.after_id)
    if options.follow or any(each is not None for each in others):
        raise OptionError("with --closed only --connection, --node, --search, --since and --limit choose")
    query = {name: value for name, value in options.query().items() if name in ("connection", "node", "maxAgeMs")}
    found = to.api.get("/v1/requests/closed", **query, q=options.search, limit=options.limit or _LIMIT)
    rows = (
        (
            entry["id"],
            _time(entry["closedMs"]),
            entry["connection"],
            entry["peer"],
            "controller" if entry["refused"] else "peer",
            entry["reason"],
        )
        for entry in found["closed"]
    )
    to.show(found, lambda: table(_CLOSED, rows, "no connection was closed"))


def _time(at_ms: float) -> str:
    time = datetime.fromtimestamp(at_ms / 1000)
    return f"{time:%H:%M:%S}.{time.microsecond // 1000:03}"


def _follow(to: Remote, options: ListOptions) -> None:
    events = to.api.events("/v1/requests/stream", **options.query())
    coming = (exchange for event in events for exchange in event["requests"])
    for exchange in islice(coming, options.limit):
        print(json.dumps(exchange) if to.as_json else _line(exchange))


def _line(exchange: dict[str, Any]) -> str:
    """One line of fixed columns, as a table cannot be made of what is still to come."""
    row = (printable_line(str(each)) for each in _row(exchange))
    number, time, broker, client, connection, request, answer, ms = row
    return f"{number:>6}  {time}  {broker:>6}  {client:<16}  {connection:>4}  {request:<28}  {answer}  {ms} ms"


def _row(exchange: dict[str, Any]) -> tuple[object, ...]:
    broker_id = exchange.get("brokerId")
    answer = exchange.get("reason") or exchange.get("error") or "ok"
    if exchange["servedBy"] not in ("controller", "broker"):
        answer += f" by {exchange['servedBy']}"
    if exchange.get("unmatched"):
        answer += " UNEXPECTED"
    if exchange.get("failure"):
        answer += " BROKE"
    return (
        exchange["id"],
        _time(exchange["receivedMs"]),
        f"{'via ' if exchange['forwarded'] else ''}{'-' if broker_id is None else broker_id}",
        exchange.get("clientId") or "-",
        f"{exchange['connection']}{' at broker ' + str(exchange['node']) if exchange['atBroker'] else ''}",
        f"{exchange['api']} v{exchange['apiVersion']}",
        answer,
        f"{exchange['tookUs'] / 1000:.3f}",
    )


COMMANDS = {"requests": commands.command}
