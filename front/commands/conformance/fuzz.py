"""`mockraft conformance fuzz`: seeded random requests to two controllers at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mockraft.conformance.fuzz.run import Finding
    from mockraft.conformance.fuzz.steps import Step

DIFFERENT = 1
NO_CONTROLLER = 3

ABOUT = """Send the same seeded random requests to two controllers and stop at the first difference.

Both must be new: no brokers, no topics. Answers and the records that Fetch then reads are compared after ids, epochs
and times of their own got common names. What differs is shown as the smallest sequence found, a line of JSON for each
request, which --replay takes.

\b
  mockraft serve --port 9093 --session-timeout-ms 1000000000 &
  mockraft conformance fuzz --bootstrap 127.0.0.1:9093 --against kafka:9093
  mockraft conformance fuzz --bootstrap 127.0.0.1:9093 --against kafka:9093 --seed 7 --steps 10000
  mockraft conformance fuzz --bootstrap 127.0.0.1:9093 --against kafka:9093 --replay found.jsonl

Exit codes: 0 no difference, 1 a difference, 2 a bad option or a controller that is not new, 3 no controller answered.
"""

Bootstrap = Annotated[str, typer.Option(help="host:port of the first controller.")]
Against = Annotated[str, typer.Option(help="host:port of the second, as a rule Kafka's.")]
Seed = Annotated[int, typer.Option(help="Seed of the first episode; the next has the next one.")]
Steps = Annotated[int, typer.Option(min=1, help="How many requests; each 250 begin in an empty world.")]
ClusterId = Annotated[str | None, typer.Option(help="The first one's cluster id. Default: it is asked.")]
AgainstClusterId = Annotated[str | None, typer.Option(help="The second one's cluster id. Default: it is asked.")]
Replay = Annotated[Path | None, typer.Option(help="Take the steps in this file instead.")]
Save = Annotated[Path | None, typer.Option(help="Keep the steps that show a difference in this file.")]


def register(app: typer.Typer) -> None:
    """Add the command to `mockraft conformance`."""
    app.command("fuzz", help=ABOUT, short_help="Random requests to two controllers at once.")(fuzz)


def fuzz(
    bootstrap: Bootstrap,
    against: Against,
    seed: Seed = 1,
    steps: Steps = 1000,
    cluster_id: ClusterId = None,
    against_cluster_id: AgainstClusterId = None,
    replay: Replay = None,
    save: Save = None,
) -> None:
    """Fuzz two controllers; see ABOUT."""
    from mockraft.conformance.fuzz import differential

    ids = {"cluster_id": cluster_id, "against_cluster_id": against_cluster_id}
    try:
        if replay is None:
            report = differential.run(bootstrap, against, seed=seed, steps=steps, on_steps=_tell, **ids)
        else:
            report = differential.run_again(bootstrap, against, _steps_in(replay), **ids)
    except OSError as error:
        typer.echo(f"mockraft conformance fuzz: {bootstrap} or {against}: {error}", err=True)
        raise typer.Exit(NO_CONTROLLER) from None
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(str(error)) from None
    if report.finding is None:
        typer.echo(f"{report.steps} steps, no difference")
        return
    typer.echo(differential.text_of(report.finding))
    if save is not None:
        save.write_text("\n".join(differential.lines_of(report.finding.steps)) + "\n", encoding="utf-8")
    if replay is None:
        typer.echo(_command(bootstrap, against, ids, report.finding))
    raise typer.Exit(DIFFERENT)


def _tell(steps: int) -> None:
    typer.echo(f"{steps} steps", err=True)


def _steps_in(path: Path) -> list[Step]:
    """The steps that are kept in a file; a bad one ends the command with exit code 2."""
    from mockraft.conformance.fuzz import differential

    try:
        return differential.steps_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--replay") from None
    except ValueError as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--replay") from None


def _command(bootstrap: str, against: str, ids: Mapping[str, str | None], finding: Finding) -> str:
    told = "".join(f" --{name.replace('_', '-')} {given}" for name, given in ids.items() if given)
    return (
        f"again: mockraft conformance fuzz --bootstrap {bootstrap} --against {against}{told}"
        f" --seed {finding.seed} --steps {finding.step}"
    )
