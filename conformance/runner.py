"""Runs cases against a controller: exclusive ones one by one, then the others in parallel, disruptive ones last."""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from collections.abc import Callable, Sequence

from mockraft.conformance.case import Case
from mockraft.conformance.exchanges import masked, plain, without_its_secrets
from mockraft.conformance.expectation import NotApplicableError, NotAsExpectedError
from mockraft.conformance.identities import Identities, RunIds
from mockraft.conformance.log import Log
from mockraft.conformance.suite import all_cases
from mockraft.conformance.target import CannotConnectError, Target, look_up
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.conformance.world import World
from mockraft.wire import codec_path
from mockraft.wire.client import DisconnectedError
from mockraft.wire.errors import WireError
from mockraft.wire.redaction.messages import without_secrets

PARALLEL = 16
CASE_TIMEOUT_S = 60.0
_STORY_MAX = 12

OnVerdict = Callable[[Verdict], None]


async def run(
    target: str | Target,
    *,
    cases: Sequence[Case] | None = None,
    parallel: int = PARALLEL,
    seed: int | None = None,
    show_secrets: bool = False,
    on_verdict: OnVerdict = lambda _: None,
) -> Run:
    """Run cases against an active controller.

    Args:
        target: addresses of the controller listener, `host:port[,host:port…]`, or what `target.look_up` returned.
        cases: the cases to run; default: those of `suite.all_cases` that do not make Kafka's own controller resign.
        parallel: the number of cases that run in parallel.
        seed: seed for names and ids; the same seed gives the same ones.
        show_secrets: keep passwords, keys, tokens and sensitive configs in the verdicts.
        on_verdict: called with each verdict as it is reached.

    Raises:
        CannotConnectError: no address responds as an active controller.
        ValueError: `target` is no list of addresses.
    """
    began = time.monotonic()
    if isinstance(target, str):
        target = await look_up(target)
    chosen = [each for each in all_cases() if not each.disruptive] if cases is None else cases
    identities = RunIds(random.Random(seed))
    log = Log(target)
    verdicts: dict[str, Verdict] = {}
    places = asyncio.Semaphore(parallel)

    async def judge(number: int, case: Case) -> None:
        async with places:
            ids = Identities(identities, number)
            verdict = verdicts[case.name] = await _verdict(target, log, ids, case, show_secrets)
        on_verdict(verdict)

    numbered = list(enumerate(chosen))
    try:
        await log.catch_up()
        for number, case in numbered:
            if case.alone and not case.disruptive:
                await judge(number, case)
        together = [each for each in numbered if not each[1].alone and not each[1].disruptive]
        await asyncio.gather(*(judge(*each) for each in together))
        for number, case in numbered:
            if case.disruptive:
                await judge(number, case)
    finally:
        await log.close()
    return Run(
        target.bootstrap,
        target.cluster_id,
        target.metadata_version,
        target.release_text,
        seconds=time.monotonic() - began,
        verdicts=[verdicts[case.name] for case in chosen],
        codec=codec_path.path,
    )


async def _verdict(target: Target, log: Log, identities: Identities, case: Case, show_secrets: bool) -> Verdict:
    verdict = Verdict(case.name, case.area, case.rank.value, case.source, Outcome.NOT_APPLICABLE)
    if misfit := case.misfit(target):
        verdict.reason = misfit
        return verdict
    began = time.monotonic()
    world = World(target, log, identities, alone=case.alone)
    try:
        async with asyncio.timeout(CASE_TIMEOUT_S):
            await world.skip_records()
            await _tried(case, world)
        verdict.outcome = Outcome.PASSED
    except NotApplicableError as error:
        verdict.reason = str(error)
    except NotAsExpectedError as error:
        found = error if show_secrets else without_its_secrets(error)
        verdict.outcome, verdict.reason = Outcome.FAILED, str(found)
        verdict.detail = {
            "what": found.what,
            "path": found.first.path,
            "expected": plain(found.expected),
            "got": plain(found.got),
        }
    except (CannotConnectError, DisconnectedError, WireError) as error:
        verdict.outcome, verdict.reason = Outcome.FAILED, str(error)
    except TimeoutError:
        verdict.outcome, verdict.reason = Outcome.FAILED, f"it was not over within {CASE_TIMEOUT_S:g} s"
    except Exception as error:
        verdict.outcome, verdict.reason = Outcome.FAILED, f"{type(error).__name__}: {error}"
        verdict.detail = {"what": traceback.format_exc(limit=-3)}
    finally:
        if verdict.outcome is Outcome.FAILED:
            story = plain(world.story[-_STORY_MAX:])
            verdict.detail["story"] = story if show_secrets else without_secrets(story)
        verdict.exchanges = masked(world.story, target, identities)
        await world.close()
        verdict.seconds = round(time.monotonic() - began, 3)
    return verdict


async def _tried(case: Case, world: World) -> None:
    """Run a case; of several tasks' errors raise the first."""
    try:
        await case.trial(world)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
