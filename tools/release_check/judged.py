"""Mockraft judged by a release: its messages by the release's classes, its controller by the release's own."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import islice
from random import Random

from mockraft.codegen.overlay import load
from mockraft.conformance import Run, run
from mockraft.conformance.verdicts import Parting, outcome_text, partings
from mockraft.kafka.message_oracle import Answer, ask_java, without_records
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import random_uuid
from mockraft.releases import Release
from mockraft.vectors.bodies import MANNERS, NOT_GENERATED, random_body
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import Tree, from_json, to_json
from mockraft.wire.overlay import Overlay, using
from mockraft.wire.schema_files import load as load_schema
from mockraft.wire.schema_files import parse
from mockraft.wire.spec_files import FOLDERS

from tools.on_kafka import SEED, TOKEN_KEY, run_on_kafka

from .report import FailedError, Findings, table
from .subject import Subject

ROWS_MAX = 200
"""Rows of one table in the report."""


def judge_messages(subject: Subject) -> Findings:
    """Compare bytes and JSON of random bodies of every message and version with those of the release's classes."""
    rng = Random(431)
    with using(load(folder for name in FOLDERS if (folder := subject.synced / name).is_dir())) as messages:
        pairs = _pairs(Release(subject.kafka_version, subject.schemas))
        bodies = [(*pair, random_body(*pair, rng, manner)) for pair in pairs for manner in MANNERS]
        questions = [("json", name, version, json.dumps(tree)) for name, version, tree in bodies]
        subject.progress(f"{len(bodies):,} random bodies of {len(pairs)} messages and versions")
        answers = ask_java(questions, subject.kafka_version)
        wrong = [
            [name, str(version), what]
            for (name, version, tree), answer in zip(bodies, answers, strict=True)
            if (what := difference(messages, name, version, tree, answer))
        ]
    line = f"{len(bodies) - len(wrong):,} of {len(bodies):,} bodies are Kafka's, byte for byte"
    if wrong:
        raise FailedError(Findings(line, table(["message", "version", "difference"], [*islice(wrong, ROWS_MAX)])))
    return Findings(line)


def _pairs(of: Release) -> list[tuple[str, int]]:
    """Return every message and version that a release sends or stores."""
    schemas = [parse(load_schema(text)) for text in of.specs.values()]
    return [
        (each.name, version)
        for each in schemas
        if each.name not in NOT_GENERATED
        for version in range(each.valid.low, each.valid.high + 1)
    ]


def difference(messages: Overlay, name: str, version: int, tree: Tree, answer: Answer) -> str:
    """Return how mockraft differs from Kafka for one body; an empty text if it does not."""
    if answer.error:
        return f"Kafka does not take the body: {answer.error}"
    cls = messages.by_name(name)
    try:
        message = cls.read(answer.data, version)
        written = message.write(version)
        if written != answer.data:
            return f"read and written again: {written.hex()[:80]}, not {answer.data.hex()[:80]}"
        if without_records(to_json(message, version)) != answer.tree:
            return "its JSON is not Kafka's"
        if from_json(cls, tree, version).write(version) != answer.data:
            return "the same JSON gives other bytes"
    except WireError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def judge_controller(subject: Subject) -> Findings:
    """Run the conformance suite on the release's controller and on mockraft; each case must end alike."""
    theirs = run_on_kafka(subject.folder / "controller", version=subject.kafka_version)
    subject.progress(f"its controller: {_counts(theirs)}")
    mine = _run_on_mockraft(subject)
    subject.progress(f"serve --release {subject.served.name}: {_counts(mine)}")
    return compared(mine, theirs)


def compared(mine: Run, theirs: Run) -> Findings:
    """Compare the runs. Raises FailedError for another outcome, or if Kafka's own controller fails a case.

    A case that it fails asks for what the release has changed, whatever the outcome is here. One that applies to one of
    the two only is listed and no failure.
    """
    found = partings(mine, theirs)
    here = {each.name: each for each in mine.verdicts}
    outdated = [Parting(here[each.name], each) for each in theirs.failures if each.name in here]
    names = {each.mine.name for each in outdated}
    wrong = [each for each in found if not each.is_of_applicability and each.mine.name not in names]
    one_only = [each for each in found if each.is_of_applicability and each.mine.name not in names]
    line = (
        f"{len(wrong)} of {len(mine.verdicts)} cases end otherwise than on its controller, "
        f"{len(outdated)} fail there, {len(one_only)} apply to one of the two only"
    )
    head = ["case", "mockraft", "Kafka", "reason here", "reason there"]
    listed = [*outdated, *wrong, *one_only]
    detail = table(head, [_row(each) for each in listed]) if listed else ""
    if outdated or wrong:
        raise FailedError(Findings(line, detail))
    return Findings(line, detail)


def _run_on_mockraft(subject: Subject) -> Run:
    options = ("--release", subject.served.name, "--delegation-token-secret-key", TOKEN_KEY)
    controller = MockraftController(subject.folder / "serve", random_uuid(), keep_data=False, options=options)
    controller.start()
    try:
        controller.wait_until_running()
        return asyncio.run(run(controller.bootstrap, seed=SEED))
    finally:
        controller.kill()


def _counts(of: Run) -> str:
    outcomes: Counter[str] = Counter(each.outcome.value for each in of.verdicts)
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())


def _row(of: Parting) -> list[str]:
    reasons = [each.reason if each else "" for each in of]
    return [of.mine.name, *map(outcome_text, of), *reasons]
