"""`mockraft record`: exchanges with a controller as a stub file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from mockraft.commands.broker.command import host_and_port
from mockraft.commands.traffic.replay import Ports, exchanges_of

if TYPE_CHECKING:
    from mockraft.spark_replay.regression.captured import Captured

BAD_OPTION = 2
NO_PORT = 3

ABOUT = """Make stubs of a controller's responses, so that mockraft responds to the same requests in the same way.

The exchanges come from a capture, or from brokers that connect to --listen until Ctrl-C and whose requests go to
--upstream. A stub matches API, version, client id and the request fields that are the same in another run; epochs,
offsets, times and random ids are ignored. If the same request got different responses, they become a scenario: one
after the other, and the last one stays.

\b
  mockraft record --capture run.pcapng --out stubs.json
  mockraft record --upstream 127.0.0.1:9093 --listen 127.0.0.1:19093 --out stubs.json
  mockraft record --capture run.pcapng --filter BrokerRegistration --only brokerId --out stubs.json
  mockraft serve --stubs stubs.json

Exit codes: 2 invalid option or capture, 3 a port is not available.
"""

Out = Annotated[Path, typer.Option(help="The stub file; - for stdout.")]
Capture = Annotated[Path | None, typer.Option(help="A pcap or pcapng file.")]
Upstream = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Record from this controller instead.")]
Listen = Annotated[str, typer.Option(metavar="HOST:PORT", help="With --upstream: address for brokers.")]
Filters = Annotated[
    list[str] | None, typer.Option("--filter", metavar="API[,API]", help="Only these APIs, or with ! all others.")
]
AnyVersion = Annotated[bool, typer.Option("--any-version", help="Match requests of every version.")]
AnyClient = Annotated[bool, typer.Option("--any-client", help="Match requests of every client id.")]
Only = Annotated[list[str] | None, typer.Option(metavar="FIELD", help="Match only this field of requests; repeatable.")]
Ignore = Annotated[list[str] | None, typer.Option(metavar="FIELD", help="Do not match this field; repeatable.")]
NoScenarios = Annotated[
    bool, typer.Option("--no-repeats-as-scenarios", help="Keep only the last response to the same request.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("record", help=ABOUT, short_help="Make stubs of a controller's responses.")(record)


def record(
    out: Out,
    capture: Capture = None,
    upstream: Upstream = None,
    listen: Listen = "127.0.0.1:19093",
    port: Ports = None,
    filters: Filters = None,
    any_version: AnyVersion = False,
    any_client: AnyClient = False,
    only: Only = None,
    ignore: Ignore = None,
    no_repeats_as_scenarios: NoScenarios = False,
) -> None:
    """Record; see ABOUT."""
    from mockraft.spark_replay.recorded_stubs import stubs_of
    from mockraft.spark_replay.recording import Filter

    if (capture is None) == (upstream is None):
        raise typer.BadParameter("use either --capture or --upstream")
    try:
        kept = Filter.parse(filters or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--filter") from None
    exchanges = exchanges_of("record", capture, port) if capture is not None else _live(str(upstream), listen, out)
    found = stubs_of(
        exchanges,
        kept=kept,
        scopes=[name for name, left in (("version", any_version), ("clientId", any_client)) if not left],
        only_fields=only or (),
        ignored_fields=ignore or (),
        repeats_as_scenarios=not no_repeats_as_scenarios,
    )
    text = json.dumps({"stubs": found.stubs}, indent=1, ensure_ascii=False)
    if out == Path("-"):
        typer.echo(text)
    else:
        try:
            out.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            typer.echo(f"mockraft record: cannot write {out}: {error.strerror}", err=True)
            raise typer.Exit(BAD_OPTION) from None
    for (api, why), count in found.left_out.items():
        typer.echo(f"left out: {count:,} {api}, {why}", err=True)
    typer.echo(f"{len(found.stubs):,} stubs of {len(exchanges):,} exchanges in {out}", err=True)


def _live(upstream: str, listen: str, out: Path) -> list[Captured]:
    """Record the traffic between --listen and --upstream until a signal."""
    from mockraft.commands.traffic.capture import WILDCARDS, listen_address, run_until_signal
    from mockraft.spark_replay.endpoints import Endpoint
    from mockraft.spark_replay.recorded_exchanges import RecordedExchanges
    from mockraft.spark_replay.recording_proxy import RecordingProxy

    host, port = listen_address(listen)
    if host in WILDCARDS:
        raise typer.BadParameter(
            f"brokers cannot connect to {host}: use an address of this host", param_hint="--listen"
        )
    upstreams = [Endpoint(*host_and_port(text, "--upstream")) for text in upstream.split(",")]
    recorded = RecordedExchanges()
    try:
        proxy = RecordingProxy(recorded, upstreams, host=host, port=port, on_event=_print_event)
        run_until_signal(proxy, out=out, quiet=False, command="record")
    except OSError as error:
        typer.echo(f"mockraft record: {error}", err=True)
        raise typer.Exit(NO_PORT) from None
    return recorded.exchanges


def _print_event(text: str) -> None:
    typer.echo(f"mockraft record: {text}", err=True)
