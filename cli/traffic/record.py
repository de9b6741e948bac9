"""`mockraft record`: exchanges with a controller as a stub file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import api_filter, write_json
from mockraft.cli.spark.options import KEY_LOG_HELP
from mockraft.cli.traffic.capture import Addresses, record_until_signal
from mockraft.cli.traffic.replay import exchanges_of
from mockraft.kafka_api.options import OptionError, option, required
from mockraft.server.admin.recorder import StubChoice
from mockraft.spark_replay.recorded_exchanges import RecordedExchanges
from mockraft.testing.recorder import chosen_stubs

ABOUT = """Make stubs of a controller's responses, so that mockraft responds to the same requests in the same way.

The exchanges come from a capture, or from brokers that connect to --listen until Ctrl-C and whose requests go to
--upstream. A stub matches API, version, client id and the request fields that are the same in another run; epochs,
offsets, times and random ids are ignored. If the same request got different responses, they become a scenario: one
after the other, and the last one stays.

  mockraft record --capture run.pcapng --out stubs.json
  mockraft record --upstream 127.0.0.1:9093 --listen 127.0.0.1:19093 --out stubs.json
  mockraft record --capture run.pcapng --filter BrokerRegistration --only brokerId --out stubs.json
  mockraft serve --stubs stubs.json

""" + exit_codes(ExitCode.CANNOT_LISTEN, ExitCode.MISSING, done="the stubs are written")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft record`."""

    out: Path = required(help="The stub file; - for stdout.")
    capture: Path | None = option(None, help="A pcap or pcapng file.")
    port: list[int] | None = option(None, help="The captured controller's port; repeatable. Default: all servers.")
    key_log: Path | None = option(None, help=KEY_LOG_HELP)
    upstream: str | None = option(None, metavar="HOST:PORT", help="Record from this controller instead.")
    listen: str = option("127.0.0.1:19093", metavar="HOST:PORT", help="With --upstream: address for brokers.")
    filters: list[str] | None = option(
        None, "--filter", metavar="API[,API]", help="Only these APIs, or with ! all others."
    )
    only: list[str] | None = option(None, metavar="FIELD", help="Match only this field of requests; repeatable.")
    ignore: list[str] | None = option(None, metavar="FIELD", help="Do not match this field; repeatable.")
    any_version: bool = option(False, help="Match requests of every version.")
    any_client: bool = option(False, help="Match requests of every client id.")
    no_repeats_as_scenarios: bool = option(False, help="Keep only the last response to the same request.")
    show_secrets: bool = option(False, help="Keep passwords, keys, tokens and sensitive configs.")


def record(options: Options) -> None:
    """Record; see ABOUT."""
    api_filter(options.filters)
    if options.capture is not None and options.upstream is None:
        exchanges = exchanges_of("record", options.capture, options.port, options.key_log)
    elif options.capture is None and options.upstream is not None:
        addresses = Addresses.parse(options.listen, [options.upstream])
        exchanges = record_until_signal("record", RecordedExchanges, addresses, out=options.out).exchanges
    else:
        raise OptionError("use either --capture or --upstream")
    fields = (options.filters or (), options.only or (), options.ignore or ())
    choice = StubChoice(*fields, options.any_version, options.any_client, not options.no_repeats_as_scenarios)
    found = chosen_stubs(exchanges, choice, show_secrets=options.show_secrets)
    write_json("record", options.out, {"stubs": found.stubs})
    for each in found.left_out:
        print(f"left out: {each.count:,} {each.api}, {each.why}", file=sys.stderr)
    print(f"{len(found.stubs):,} stubs of {len(exchanges):,} exchanges in {options.out}", file=sys.stderr)


COMMANDS = {"record": Command("record", record, ABOUT)}
