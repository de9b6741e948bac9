"""Options and output that the commands of a twin share: its source, and those of `mockraft serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mockraft.cli.refusals import end_without
from mockraft.cli.serve.options import OPTIONS
from mockraft.kafka_api.options import Option, blaming, option
from mockraft.server.controller.image.topics import NO_LEADER
from mockraft.twin import SourceError, read_history

if TYPE_CHECKING:
    from mockraft.twin import History, Moment

SOURCE_HELP = "A data directory, snapshot, segment or capture."
Source = Annotated[Path, Option(flags=("--from",), help=SOURCE_HELP)]
AsJson = Annotated[bool, Option(flags=("--json",), help="As JSON.")]

_NAMES_SHOWN = 3
_NOTES_SHOWN = 20


def option_of_serve(name: str, about: str | None = None) -> Any:
    """Return an option of `mockraft serve` with its default, bounds and help, or with another help."""
    row = OPTIONS[name]
    return option(
        row.default,
        *row.flags,
        help=about or row.help,
        metavar=row.metavar,
        lowest=row.lowest,
        highest=row.highest,
        choices=row.choices,
    )


def history_of(source: Path, hint: str = "--from") -> History:
    """Return the history of a source. OptionError with this hint; end the command if a package is missing."""
    try:
        with blaming(hint, SourceError):
            return read_history(source)
    except ModuleNotFoundError as error:
        end_without("twin", error.name, "captures")


def report(history: History, moment: Moment, simulated: int | None = None) -> None:
    """Describe a state on stderr, in one line, and what its source lacks."""
    lines = [_about(history, moment, simulated), *history.notes[:_NOTES_SHOWN]]
    if len(history.notes) > _NOTES_SHOWN:
        lines.append(f"and {len(history.notes) - _NOTES_SHOWN} more of these")
    if (batch := history.around(moment)) is not None:
        first, last = batch
        states = f"those at {first - 1} and {last}" if first else f"that at {last}"
        inside = f"offset {moment.id.end_offset - 1} is inside the batch {first}–{last}"
        lines.append(f"{inside}, which brokers apply at once: none had this state, but {states}")
    for line in lines:
        print(f"mockraft twin: {line}", file=sys.stderr)


def _about(history: History, moment: Moment, simulated: int | None = None) -> str:
    """Return the source, point and size of a state, in one line."""
    image = moment.image
    topics = image.topics.by_id.values()
    offline = [
        f"{topic.name}-{partition_id}"
        for topic in topics
        for partition_id, partition in sorted(topic.partitions.items())
        if partition.leader == NO_LEADER
    ]
    more = f" and {len(offline) - _NAMES_SHOWN} more" if len(offline) > _NAMES_SHOWN else ""
    return (
        f"{history.source} up to {moment.point}: {_count(len(image.cluster.brokers), 'broker')},"
        + (f" {simulated} of them simulated," if simulated is not None else "")
        + f" {_count(len(topics), 'topic')}, {_count(sum(len(each.partitions) for each in topics), 'partition')}"
        + (f", {len(offline)} of them offline: {', '.join(offline[:_NAMES_SHOWN])}{more}" if offline else "")
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
