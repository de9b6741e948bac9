"""`mockraft capture`: a recording proxy between brokers and controllers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from mockraft.commands.broker.command import host_and_port

if TYPE_CHECKING:
    from mockraft.spark_replay.recording import TrafficRecorder
    from mockraft.spark_replay.recording_proxy import RecordingProxy

RECORDING_ENDED = 1
NO_PORT = 3
PROGRESS_INTERVAL_S = 1.0
WILDCARDS = ("0.0.0.0", "::")

ABOUT = """Record the traffic between brokers and their controllers, as a proxy, to a pcapng file for Wireshark.

Every controller gets a listener here. Controllers' addresses in responses and in the metadata log (voters) are replaced
by these listeners, so that brokers connect here again, also after a restart. The file has the bytes that each side
really sent. FILE.index.jsonl has one line per exchange.

\b
  mockraft capture --listen 127.0.0.1:19093 --upstream 127.0.0.1:9093 --out run.pcapng
  mockraft capture --listen 0.0.0.0:19093 --advertise proxy.example --upstream c1:9093 --upstream c2:9093 --out …
  mockraft capture … --filter BrokerRegistration,BrokerHeartbeat      only these APIs
  mockraft capture … --filter '!Fetch' --max-bytes 100000000          all but Fetch, at most 100 MB

Then start brokers with the ready line's bootstrap as controller.quorum.bootstrap.servers and with new metadata log
directories: an older log contains the controllers' own addresses. SIGTERM and Ctrl-C end the capture; if the process is
killed, the file is valid up to its last packet. If the disk is full, recording ends and traffic is still forwarded.

Exit codes: 1 recording ended early (full disk, --max-bytes), 2 invalid option, 3 the file or a port is not available.
"""

Listen = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Address for brokers; a second upstream gets the next port.")
]
Upstream = Annotated[
    list[str],
    typer.Option(metavar="HOST:PORT", help="A controller; repeatable. Controllers named in responses are added."),
]
Out = Annotated[Path, typer.Option(help="The capture file; overwritten.")]
Advertise = Annotated[
    str | None, typer.Option(metavar="HOST", help="Host that brokers connect to. Default: the host of --listen.")
]
Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="API[,API]", help="Record only these APIs, or with ! all others."),
]
MaxBytes = Annotated[int | None, typer.Option(min=1, help="Maximum bytes to record; traffic is still forwarded.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress line.")]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("capture", help=ABOUT, short_help="Record the traffic between brokers and controllers, as a proxy.")(
        capture
    )


def capture(
    listen: Listen,
    upstream: Upstream,
    out: Out,
    advertise: Advertise = None,
    filters: Filters = None,
    max_bytes: MaxBytes = None,
    quiet: Quiet = False,
) -> None:
    """Run the proxy until a signal."""
    from mockraft.spark_replay.endpoints import Endpoint
    from mockraft.spark_replay.recording import Filter, Recording
    from mockraft.spark_replay.recording_proxy import RecordingProxy

    host, port = listen_address(listen)
    upstreams = [Endpoint(*host_and_port(text, "--upstream")) for each in upstream for text in each.split(",")]
    if advertise is None and host in WILDCARDS:
        raise typer.BadParameter(f"brokers cannot connect to {host}: use --advertise HOST")
    try:
        kept = Filter.parse(filters or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--filter") from None
    try:
        recording = Recording(out, bytes_max=max_bytes, kept=kept)
        proxy = RecordingProxy(
            recording, upstreams, host=host, port=port, advertised_host=advertise, on_event=_print_event
        )
        run_until_signal(proxy, out=out, quiet=quiet)
    except OSError as error:
        typer.echo(f"mockraft capture: {error}", err=True)
        raise typer.Exit(NO_PORT) from None
    if recording.ended is not None:
        typer.echo(f"mockraft capture: recording ended early: {recording.ended}", err=True)
        raise typer.Exit(RECORDING_ENDED)


def listen_address(text: str) -> tuple[str, int]:
    """Parse --listen; port 0 is any free one. Raises BadParameter if it is not host:port."""
    return (text[:-2].strip("[]"), 0) if text.endswith(":0") else host_and_port(text, "--listen")


def run_until_signal(proxy: RecordingProxy, *, out: Path, quiet: bool, command: str = "capture") -> None:
    """Run the proxy until a signal; print the ready line and, unless `quiet`, progress. Raises OSError."""
    from mockraft.server.running import event_loop

    with asyncio.Runner(loop_factory=event_loop) as runner:
        runner.run(_run(proxy, out, quiet, command))


async def _run(proxy: RecordingProxy, out: Path, quiet: bool, command: str) -> None:
    from mockraft.commands.signals import stop_on_signals

    with stop_on_signals() as stopped:
        try:
            await proxy.start()
            typer.echo(f"mockraft {command} ready bootstrap={proxy.bootstrap} out={out}")
            await _watch(proxy, stopped, quiet or not sys.stderr.isatty())
        finally:
            await proxy.close()
    typer.echo(_figures(proxy.recording), err=True)


async def _watch(proxy: RecordingProxy, stopped: asyncio.Event, quiet: bool) -> None:
    """Print progress on one line until a signal, and a line as soon as recording ends."""
    recording, is_reported = proxy.recording, False
    requests, at_s = 0, time.monotonic()
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), PROGRESS_INTERVAL_S)
        recording.flush()
        if recording.ended is not None and not is_reported:
            is_reported = True
            _print_event(f"recording ended, traffic is still forwarded: {recording.ended}")
        if not quiet:
            now_s = time.monotonic()
            rate = (recording.requests - requests) / (now_s - at_s)
            requests, at_s = recording.requests, now_s
            line = f"{_figures(recording)} · {len(proxy.open_connections)} open · {rate:,.0f} requests/s"
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
    if not quiet:
        sys.stderr.write("\r\x1b[2K")


def _figures(recording: TrafficRecorder) -> str:
    from mockraft.wire import api_keys

    most = ", ".join(f"{api_keys.name(key)} {count:,}" for key, count in recording.by_api.most_common(4))
    megabytes = recording.bytes_kept / 1e6
    return f"connections {recording.connections:,}, requests {recording.requests:,} ({most}), {megabytes:,.1f} MB"


def _print_event(text: str) -> None:
    typer.echo(f"mockraft capture: {text}", err=True)
