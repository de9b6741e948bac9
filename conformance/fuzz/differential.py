"""Entry point of differential fuzzing: two addresses in, a report and its text out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager

from mockraft.conformance.fuzz.run import Finding, Pair, Report, fuzz, replay
from mockraft.conformance.fuzz.side import Side
from mockraft.conformance.fuzz.steps import FuzzStep
from mockraft.wire.connection import CONTROLLER_ENDPOINTS
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest


def run(
    bootstrap: str,
    against: str,
    *,
    seed: int = 1,
    steps: int = 1000,
    cluster_ids: tuple[str | None, str | None] = (None, None),
    on_steps: Callable[[int], None] = lambda _: None,
) -> Report:
    """Fuzz two new controllers, each at host:port; `on_steps` is called with the number of finished steps.

    Raises OSError if there is none, ValueError for one that is not new or does not describe its cluster id,
    RuntimeError for one that cannot be reset to an empty world.
    """
    with _pair(bootstrap, against, *cluster_ids) as pair:
        return fuzz(pair, seed, steps, on_steps)


def run_again(
    bootstrap: str,
    against: str,
    steps: Iterable[FuzzStep],
    *,
    cluster_ids: tuple[str | None, str | None] = (None, None),
) -> Report:
    """Replay these steps in an empty world; errors as for `run`."""
    taken = list(steps)
    with _pair(bootstrap, against, *cluster_ids) as pair:
        found = replay(pair, 0, taken)
    if found is None:
        return Report(len(taken))
    number, difference = found
    return Report(number + 1, Finding(None, number + 1, difference, taken))


def text_of(finding: Finding) -> str:
    """Return the difference and the steps that show it, one line of JSON each."""
    difference = finding.difference
    lines = [f"{difference.api} differs in {difference.path}"]
    lines += [f"  first   {json.dumps(difference.ours, ensure_ascii=False, default=sorted)}"]
    lines += [f"  second  {json.dumps(difference.theirs, ensure_ascii=False, default=sorted)}"]
    drawn = "" if finding.seed is None else f" of seed {finding.seed}"
    lines += [f"after {len(finding.steps)} of the {finding.step} steps{drawn}:"]
    return "\n".join([*lines, *lines_of(finding.steps)])


def lines_of(steps: Iterable[FuzzStep]) -> list[str]:
    """Return the steps, one line of JSON each; `steps_of` parses them."""
    return [json.dumps(step.to_json(), ensure_ascii=False) for step in steps]


def steps_of(text: str) -> list[FuzzStep]:
    """Parse steps from lines of JSON. Raises ValueError for anything else."""
    try:
        return [FuzzStep.from_json(json.loads(line)) for line in text.splitlines() if line.strip()]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no step: {error}") from None


@contextmanager
def _pair(one: str, other: str, one_id: str | None, other_id: str | None) -> Iterator[Pair]:
    """Yield two controllers, which are emptied unless an error ends the block."""
    with ExitStack() as stack:
        sides = []
        for name, address, cluster_id in (("the first", one, one_id), ("the second", other, other_id)):
            side = stack.enter_context(closing(Side(name, address, cluster_id or "")))
            if not cluster_id:
                side.cluster_id = _cluster_id(side)
                side.own_texts[side.cluster_id] = "$cluster"
            sides.append(side)
        pair = Pair(*sides)
        yield pair
        pair.end()


def _cluster_id(side: Side) -> str:
    answer = side.request(DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS), 1)
    if answer.error_code:
        raise ValueError(f"{side.name} does not return its cluster id (error {answer.error_code}): give it")
    return str(answer.cluster_id)
