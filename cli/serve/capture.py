"""`mockraft serve-capture`: a controller made of a capture, for brokers that live."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.cli.signals import stop_on_signals
from mockraft.cli.traffic.capture import listen_address
from mockraft.cli.traffic.replay import CaptureOptions, exchanges_of
from mockraft.kafka_api.options import option
from mockraft.spark_replay.regression.capture_controller import CaptureController
from mockraft.spark_replay.regression.captured_answers import CapturedAnswers

ABOUT = """Answer brokers as the controller in a capture answered: a replay the other way round.

A request gets the captured answer to the same request: same API, version, client, and the fields that would be the
same in another run. Several answers to one request come in their order, and the last one stays. Epochs and topic ids
are the captured ones; the broker's own ids (cluster, incarnation, directories) and this address are put into answers.
A request that the capture has no answer to ends its connection and is logged.

  mockraft serve-capture --capture night.pcap --port 9093 --listen 127.0.0.1:19093

Ctrl-C ends it and tells what was answered.

""" + exit_codes(ExitCode.CANNOT_LISTEN, ExitCode.MISSING, done="it was stopped")


@dataclass(frozen=True, kw_only=True)
class Options(CaptureOptions):
    """Options of `mockraft serve-capture`."""

    listen: str = option("127.0.0.1:19093", metavar="HOST:PORT", help="Where brokers connect; port 0 is any free one.")


def serve_capture(options: Options) -> None:
    """Serve; see ABOUT."""
    host, to_port = listen_address(options.listen)
    answers = CapturedAnswers(exchanges_of("serve-capture", options.capture, options.port), host, to_port)
    for (api, why), count in answers.left_out.items():
        print(f"left out: {count:,} {api}, {why}", file=sys.stderr)
    try:
        asyncio.run(_serve(CaptureController(answers, on_event=_print_event)))
    except OSError as error:
        end("serve-capture", error, ExitCode.CANNOT_LISTEN)
    for api, count in answers.answered.most_common():
        print(f"{api}: {count:,} answered", file=sys.stderr)
    for (api, why), count in answers.unanswered.items():
        print(f"{api}: {count:,} not, {why}", file=sys.stderr)


async def _serve(controller: CaptureController) -> None:
    with stop_on_signals() as stopped:
        async with controller:
            print(f"mockraft serve-capture ready bootstrap={controller.bootstrap}")
            await stopped.wait()


def _print_event(text: str) -> None:
    print(f"mockraft serve-capture: {text}", file=sys.stderr)


COMMANDS = {"serve-capture": Command("serve-capture", serve_capture, ABOUT)}
