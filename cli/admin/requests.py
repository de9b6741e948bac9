"""`mockraft requests`: what brokers ask a running controller, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from mockraft.cli.admin.remote import Remote, assignments, given, group, remote, table
from mockraft.cli.exit_codes import ExitCode
from mockraft.kafka_api.private_files import write_private

ABOUT = """Requests as the journal has them. Without a command: the newest.

\b
  mockraft requests --api BrokerHeartbeat --broker-id 1
  mockraft requests --follow                              as they come; Ctrl-C ends
  mockraft requests --search my-topic                     in the decoded bodies
  mockraft requests --closed                              closed connections: failed logins, refused bytes
  mockraft requests show 17                               with its bodies, or a closed connection
  mockraft requests verify BrokerRegistration --count 3 --within-ms 5000
  mockraft requests save run.pcapng · save run.jsonl      for Wireshark, or a line each
"""

_EXCHANGE = ("ID", "TIME", "BROKER", "CLIENT", "CONNECTION", "REQUEST", "ANSWER", "MS")
_CLOSED = ("ID", "TIME", "CONNECTION", "PEER", "BY", "REASON")
_LIMIT = 50


commands = group("requests", ABOUT, "List or follow the requests that it receives.")


@remote(commands)
def listed(
    to: Remote,
    api: Annotated[list[str] | None, typer.Option(metavar="API", help="Only this API; repeat for more.")] = None,
    broker_id: Annotated[int | None, typer.Option(help="Only this broker's.")] = None,
    client_id: Annotated[str | None, typer.Option(help="Only this client's.")] = None,
    connection: Annotated[int | None, typer.Option(help="Only this connection's.")] = None,
    node: Annotated[int | None, typer.Option(help="Only this node's of a quorum.")] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="Only those whose JSON has this text.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="So many, 50 by default; with --follow the end after so many."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they come.")] = False,
    closed: Annotated[
        bool, typer.Option("--closed", help="Closed connections with the reason, failed logins among them, instead.")
    ] = False,
) -> None:
    """List the newest requests, or follow them."""
    if closed:
        if follow or api or broker_id is not None or client_id is not None:
            raise typer.BadParameter("with --closed only --connection, --node, --search and --limit choose")
        _list_closed(to, connection, node, search, limit)
        return
    wanted = {"api": api, "clientId": client_id, "brokerId": broker_id, "connection": connection, "node": node}
    if follow:
        if search is not None:
            raise typer.BadParameter("--search looks back, not forward: leave it or --follow off")
        _follow(to, wanted, limit)
        return
    found = to.api.get("/v1/requests", **wanted, q=search, limit=limit or _LIMIT)
    to.show(found, lambda: table(_EXCHANGE, map(_row, found["requests"]), "no requests"))


@remote(commands, "show", "One request with its bodies, as JSON.")
def show(to: Remote, request_id: Annotated[int, typer.Argument(metavar="ID", help="Number of the request.")]) -> None:
    """Print one request with its decoded bodies, or another entry of the journal with that number."""
    found = to.api.get(f"/v1/entries/{request_id}")
    print(json.dumps(found, indent=2))


@remote(commands, "unmatched", "Those that a strict script did not expect.")
def unmatched(to: Remote) -> None:
    """List the newest requests that a strict script did not expect."""
    found = to.api.get("/v1/requests/unmatched")
    to.show(found, lambda: table(_EXCHANGE, map(_row, found["requests"]), "none was unexpected"))


@remote(commands, "verify", "Were there so many? Exit code 1 if not.")
def verify(
    to: Remote,
    api: Annotated[str | None, typer.Argument(metavar="API", help="Name of the API; any when left out.")] = None,
    broker_id: Annotated[int | None, typer.Option(help="Only this broker's.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE", help='A field of the request; VALUE may be {"gte": 5}.')
    ] = None,
    count: Annotated[int | None, typer.Option(help="Exactly so many.")] = None,
    at_least: Annotated[int | None, typer.Option(help="Default: 1.")] = None,
    at_most: Annotated[int | None, typer.Option(help="No more than so many.")] = None,
    within_ms: Annotated[int, typer.Option(help="How long they may take to come.")] = 0,
) -> None:
    """Check that there were so many requests; exit code 1 and a report where not."""
    match = given(api=api, brokerId=broker_id, where=assignments(where or (), "--where") or None)
    body = given(count=count, atLeast=at_least, atMost=at_most, withinMs=within_ms, match=match)
    found = to.api.send("POST", "/v1/requests/verify", body)
    to.show(found, f"{found['count']} requests" if found["verified"] else found["report"])
    if not found["verified"]:
        raise typer.Exit(ExitCode.FAILED)


@remote(commands, "save", "The journal as a file for Wireshark, or as JSON lines.")
def save(to: Remote, file: Annotated[Path, typer.Argument(help="FILE.pcapng or FILE.jsonl; overwritten.")]) -> None:
    """Write the journal into a file: a capture that Wireshark opens, or a JSON text a line."""
    if file.suffix not in (".pcapng", ".jsonl"):
        raise typer.BadParameter(f"{file}: its name ends in .pcapng or .jsonl")
    data = to.api.read("GET", f"/v1/requests{file.suffix}")
    write_private(file, data)
    to.show({"file": str(file), "bytes": len(data)}, f"{file}: {len(data):,} bytes")


@remote(commands, "clear", "Forget them.")
def clear(to: Remote) -> None:
    """Forget all requests, and the counts of them."""
    to.api.send("DELETE", "/v1/requests")
    to.show(None, "the journal is empty")


def _list_closed(to: Remote, connection: int | None, node: int | None, search: str | None, limit: int | None) -> None:
    found = to.api.get("/v1/requests/closed", connection=connection, node=node, q=search, limit=limit or _LIMIT)
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


def _follow(to: Remote, wanted: Mapping[str, object], limit: int | None) -> None:
    left = limit
    for exchange in _live(to, wanted):
        print(json.dumps(exchange) if to.as_json else _line(exchange), flush=True)
        left = None if left is None else left - 1
        if left == 0:
            return


def _live(to: Remote, wanted: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    for event in to.api.events("/v1/requests/stream", **wanted):
        yield from event["requests"]


def _line(exchange: dict[str, Any]) -> str:
    """One line of fixed columns, as a table cannot be made of what is still to come."""
    number, time, broker, client, connection, request, answer, ms = map(str, _row(exchange))
    return f"{number:>6}  {time}  {broker:>6}  {client:<16}  {connection:>4}  {request:<28}  {answer}  {ms} ms"


def _row(exchange: dict[str, Any]) -> tuple[object, ...]:
    broker_id = exchange.get("brokerId")
    answer = exchange.get("reason") or exchange.get("error") or "ok"
    if exchange["servedBy"] != "controller":
        answer += f" by {exchange['servedBy']}"
    if exchange.get("unmatched"):
        answer += " UNEXPECTED"
    if exchange.get("failure"):
        answer += " BROKE"
    return (
        exchange["id"],
        _time(exchange["receivedMs"]),
        "-" if broker_id is None else broker_id,
        exchange.get("clientId") or "-",
        exchange["connection"],
        f"{exchange['api']} v{exchange['apiVersion']}",
        answer,
        f"{exchange['tookUs'] / 1000:.3f}",
    )
