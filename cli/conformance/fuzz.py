"""`mockraft conformance fuzz`: seeded random requests to two controllers at once."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.conformance.fuzz import differential
from mockraft.files.private_files import write_private
from mockraft.kafka_api.options import OptionError, option, required

if TYPE_CHECKING:
    from mockraft.conformance.fuzz.steps import FuzzStep

ABOUT = """Send the same seeded random requests to two controllers and stop at the first difference.

Both must be new: no brokers, no topics. Answers and the records that Fetch then reads are compared after ids, epochs
and times of their own got common names. What differs is shown as the smallest sequence found, a line of JSON for each
request, which --replay takes.

  mockraft serve --port 9093 --session-timeout-ms 1000000000 &
  mockraft conformance fuzz --bootstrap 127.0.0.1:9093 --against kafka:9093
  mockraft conformance fuzz --bootstrap 127.0.0.1:9093 --against kafka:9093 --seed 7 --steps 10000
  mockraft conformance fuzz --bootstrap 127.0.0.1:9093 --against kafka:9093 --replay found.jsonl

Controllers that are not new are a wrong option.

""" + exit_codes(ExitCode.NO_ANSWER, done="no difference", failed="a difference")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft conformance fuzz`."""

    bootstrap: str = required(help="host:port of the first controller.")
    against: str = required(help="host:port of the second, as a rule Kafka's.")
    seed: int = option(1, help="Seed of the first episode; the next has the next one.")
    steps: int = option(1000, lowest=1, help="How many requests; each 250 begin in an empty world.")
    cluster_id: str | None = option(None, help="The first one's cluster id. Default: it is asked.")
    against_cluster_id: str | None = option(None, help="The second one's cluster id. Default: it is asked.")
    replay: Path | None = option(None, help="Take the steps in this file instead.")
    save: Path | None = option(None, help="Keep the steps that show a difference in this file.")


def fuzz(options: Options) -> None:
    """Fuzz two controllers; see ABOUT."""
    ids = options.cluster_id, options.against_cluster_id
    try:
        if options.replay is None:
            report = differential.run(
                options.bootstrap,
                options.against,
                seed=options.seed,
                steps=options.steps,
                on_steps=_show_progress,
                cluster_ids=ids,
            )
        else:
            report = differential.run_again(
                options.bootstrap, options.against, _steps_in(options.replay), cluster_ids=ids
            )
    except OSError as error:
        end("conformance fuzz", f"{options.bootstrap} or {options.against}: {error}", ExitCode.NO_ANSWER)
    except (ValueError, RuntimeError) as error:
        raise OptionError(str(error)) from None
    if report.finding is None:
        print(f"{report.steps} steps, no difference")
        return
    print(differential.text_of(report.finding))
    if options.save is not None:
        write_private(
            options.save, "".join(f"{line}\n" for line in differential.lines_of(report.finding.steps)).encode()
        )
    if options.replay is None:
        id_options = "".join(
            f" {name} {given}"
            for name, given in zip(("--cluster-id", "--against-cluster-id"), ids, strict=True)
            if given
        )
        print(
            f"again: mockraft conformance fuzz --bootstrap {options.bootstrap} --against {options.against}{id_options}"
            f" --seed {report.finding.seed} --steps {report.finding.step}"
        )
    raise SystemExit(ExitCode.FAILED)


def _show_progress(steps: int) -> None:
    print(f"{steps} steps", file=sys.stderr)


def _steps_in(path: Path) -> list[FuzzStep]:
    """The steps that are kept in a file; a bad one ends the command with exit code 2."""
    try:
        return differential.steps_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}", "--replay") from None
    except ValueError as error:
        raise OptionError(f"{path}: {error}", "--replay") from None


COMMAND = Command("fuzz", fuzz, ABOUT)
