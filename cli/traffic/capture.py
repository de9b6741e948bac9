"""`mockraft capture`: a recording proxy between brokers and controllers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import api_filter, end, host_and_port, hosts_and_ports
from mockraft.cli.signals import stop_on_signals
from mockraft.cli.terminal import Terminal
from mockraft.kafka_api.options import OptionError, option, required
from mockraft.kafka_api.shell import event_loop
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.recording import Recording
from mockraft.spark_replay.recording_proxy import RecordingProxy
from mockraft.wire import api_keys
from rich.control import Control
from rich.segment import ControlType

if TYPE_CHECKING:
    from mockraft.spark_replay.recording import TrafficRecorder

PROGRESS_INTERVAL_S = 1.0
_CLEARED_LINE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
RecorderT = TypeVar("RecorderT", bound="TrafficRecorder")
WILDCARDS = ("0.0.0.0", "::")

ABOUT = """Record the traffic between brokers and their controllers, as a proxy, to a pcapng file for Wireshark.

Every controller gets a listener here. Controllers' addresses in responses and in the metadata log (voters) are replaced
by these listeners, so that brokers connect here again, also after a restart. The file has the bytes that each side
really sent, but for secrets, which are asterisks. FILE.index.jsonl has one line per exchange.

  mockraft capture --listen 127.0.0.1:19093 --upstream 127.0.0.1:9093 --out run.pcapng
  mockraft capture --listen 0.0.0.0:19093 --advertise proxy.example --upstream c1:9093 --upstream c2:9093 --out …
  mockraft capture … --filter BrokerRegistration,BrokerHeartbeat      only these APIs
  mockraft capture … --filter '!Fetch' --max-bytes 100000000          all but Fetch, at most 100 MB

Then start brokers with the ready line's bootstrap as controller.quorum.bootstrap.servers and with new metadata log
directories: an older log contains the controllers' own addresses. SIGTERM and Ctrl-C end the capture; if the process is
killed, the file is valid up to its last packet. If the disk is full, recording ends and traffic is still forwarded.

""" + exit_codes(ExitCode.CANNOT_LISTEN, done="it was stopped", failed="recording ended early (full disk, --max-bytes)")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft capture`."""

    listen: str = required(metavar="HOST:PORT", help="Address for brokers; a second upstream gets the next port.")
    upstream: list[str] = required(
        metavar="HOST:PORT", help="A controller; repeatable. Controllers named in responses are added."
    )
    out: Path = required(help="The capture file; overwritten.")
    advertise: str | None = option(
        None, metavar="HOST", help="Host that brokers connect to. Default: the host of --listen."
    )
    filters: list[str] | None = option(
        None, "--filter", metavar="API[,API]", help="Record only these APIs, or with ! all others."
    )
    max_bytes: int | None = option(None, lowest=1, help="Maximum bytes to record; traffic is still forwarded.")
    show_secrets: bool = option(False, help="Record passwords, keys, tokens and sensitive configs.")
    quiet: bool = option(False, help="No progress line.")


def capture(options: Options) -> None:
    """Run the proxy until a signal."""
    addresses = Addresses.parse(options.listen, options.upstream, options.advertise)
    kept = api_filter(options.filters)
    recording = record_until_signal(
        "capture",
        lambda: Recording(options.out, bytes_max=options.max_bytes, kept=kept, show_secrets=options.show_secrets),
        addresses,
        out=options.out,
        quiet=options.quiet,
    )
    if recording.ended is not None:
        end("capture", f"recording ended early: {recording.ended}", ExitCode.FAILED)


class Addresses(NamedTuple):
    """Addresses of a proxy: where it listens, the host that brokers connect to, and the controllers."""

    host: str
    port: int
    advertised_host: str | None
    upstreams: list[tuple[str, int]]

    @classmethod
    def parse(cls, listen: str, upstream: Sequence[str], advertise: str | None = None) -> Addresses:
        """Parse --listen and --upstream; OptionError for what is not host:port, and for a host to listen on only."""
        host, port = listen_address(listen)
        upstreams = [address for each in upstream for address in hosts_and_ports(each, "--upstream")]
        if advertise is None and host in WILDCARDS:
            raise OptionError(
                f"brokers cannot connect to {host}: use --advertise HOST, or listen on an address of this host"
            )
        return cls(host, port, advertise, upstreams)


def listen_address(text: str) -> tuple[str, int]:
    """Parse --listen; port 0 is any free one. Raises OptionError if it is not host:port."""
    return (text[:-2].strip("[]"), 0) if text.endswith(":0") else host_and_port(text, "--listen")


def record_until_signal(
    command: str, record: Callable[[], RecorderT], to: Addresses, *, out: Path, quiet: bool = False
) -> RecorderT:
    """Run a proxy until a signal; print the ready line and, unless `quiet`, progress. OSError ends the command."""

    def on_event(text: str) -> None:
        print(f"mockraft {command}: {text}", file=sys.stderr)

    try:
        recorder = record()
    except OSError as error:
        end(command, f"cannot write {out}: {error.strerror or error}", ExitCode.USAGE)
    try:
        upstreams = [Endpoint(*each) for each in to.upstreams]
        proxy = RecordingProxy(
            recorder, upstreams, host=to.host, port=to.port, advertised_host=to.advertised_host, on_event=on_event
        )
        with asyncio.Runner(loop_factory=event_loop) as runner:
            runner.run(_run(proxy, out, quiet, command))
    except OSError as error:
        end(command, error, ExitCode.CANNOT_LISTEN)
    return recorder


async def _run(proxy: RecordingProxy, out: Path, quiet: bool, command: str) -> None:
    with stop_on_signals() as stopped:
        try:
            await proxy.start()
            print(f"mockraft {command} ready bootstrap={proxy.bootstrap} out={out}")
            await _watch(proxy, stopped, quiet or not sys.stderr.isatty())
        finally:
            await proxy.close()
    print(_figures(proxy.recording), file=sys.stderr)


async def _watch(proxy: RecordingProxy, stopped: asyncio.Event, quiet: bool) -> None:
    """Print progress on one line until a signal, and a line as soon as recording ends."""
    recording, is_reported = proxy.recording, False
    requests, at_s = 0, time.monotonic()
    terminal = Terminal(stderr=True)
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), PROGRESS_INTERVAL_S)
        recording.flush()
        if recording.ended is not None and not is_reported:
            is_reported = True
            proxy.on_event(f"recording ended, traffic is still forwarded: {recording.ended}")
        if not quiet:
            now_s = time.monotonic()
            rate = (recording.requests - requests) / (now_s - at_s)
            requests, at_s = recording.requests, now_s
            line = f"{_figures(recording)} · {len(proxy.open_connections)} open · {rate:,.0f} requests/s"
            terminal.control(_CLEARED_LINE)
            terminal.print(line, end="", soft_wrap=True)
    if not quiet:
        terminal.control(_CLEARED_LINE)


def _figures(recording: TrafficRecorder) -> str:
    most = ", ".join(f"{api_keys.name(key)} {count:,}" for key, count in recording.by_api.most_common(4))
    megabytes = recording.bytes_kept / 1e6
    return f"connections {recording.connections:,}, requests {recording.requests:,} ({most}), {megabytes:,.1f} MB"


COMMANDS = {"capture": Command("capture", capture, ABOUT)}
