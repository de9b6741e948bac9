"""Another codec judged by vectors: a program that is started once reads questions and writes answers, JSON lines both.

A question has `release`, `message`, `version` and `direction`: decode with `hex`, or encode with `json`. The answers
come in the order of the questions: `{"json": …}` or `{"hex": …}`, `{"error": "…"}` for bytes or JSON that the codec
refuses, and `{"unsupported": "…"}` for what it does not have. The program may read all questions before it answers,
and ends when its input does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from mockraft.conformance.expectation import Only, difference, shown
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.files.trees import TreeError, json_tree
from mockraft.vectors.vector_files import MALFORMED, UNKNOWN_TAGS, MessageVectors, Vector
from mockraft.wire.json_form import Tree
from mockraft.wire.printable import printable_line

ANSWER_BYTES_MAX: Final = 16 << 20
_SHOWN_MAX: Final = 160


class Question(NamedTuple):
    """One vector in one direction, and where it is."""

    kafka_version: str
    of: MessageVectors
    vector: Vector
    line: int
    direction: str

    @property
    def case(self) -> str:
        """The test case that it belongs to."""
        return f"{self.of.message} v{self.vector.version} of {self.kafka_version}"

    @property
    def place(self) -> str:
        """The line of the file."""
        return f"{self.kafka_version}/{self.of.message}.jsonl:{self.line}, {self.direction} {self.vector.kind}"

    def text(self) -> bytes:
        """Return the line for the program."""
        given = self.vector.hex if self.direction == "decode" else self.vector.json
        tree: Tree = {
            "release": self.kafka_version,
            "message": self.of.message,
            "version": self.vector.version,
            "direction": self.direction,
            "hex" if self.direction == "decode" else "json": given,
        }
        return json.dumps(tree, separators=(",", ":")).encode() + b"\n"


class _EndedError(Exception):
    """The program gives no more answers."""


def questions_of(kafka_version: str, of: MessageVectors, vectors: Sequence[Vector]) -> list[Question]:
    """Return the questions of a message's file: decode each vector, and encode the JSON that has all of the bytes."""
    return [
        Question(kafka_version, of, vector, line, direction)
        for line, vector in enumerate(vectors, 1)
        for direction in ("decode", "encode")
        if direction == "decode" or vector.is_whole
    ]


async def judge(command: Sequence[str], questions: Iterable[Question], timeout_s: float) -> Run:
    """Ask a program and return a verdict for each message and version; OSError if it cannot be started.

    A program that ends, or is silent for `timeout_s`, is asked nothing more.
    """
    began = time.monotonic()
    asked = [*questions]
    found = Run(target=" ".join(command), cluster_id="", metadata_version=0)
    answers = _answers(command, asked, timeout_s)
    ended = ""
    results: list[tuple[Question, Outcome, str]] = []
    async with contextlib.aclosing(answers):
        for question in asked:
            try:
                if ended:
                    result = Outcome.NOT_APPLICABLE, ended
                else:
                    result = _judged(question.vector, question.direction, await anext(answers))
            except _EndedError as error:
                result = Outcome.FAILED, str(error)
                ended = f"not asked: after {question.place}, {error}"
            results.append((question, *result))
    for case, group in groupby(results, key=lambda each: each[0].case):
        found.verdicts.append(_verdict(case, [*group]))
    found.seconds = time.monotonic() - began
    return found


def _verdict(case: str, results: Sequence[tuple[Question, Outcome, str]]) -> Verdict:
    of = results[0][0].of
    failures = [f"{question.place}: {why}" for question, outcome, why in results if outcome is Outcome.FAILED]
    verdict = Verdict(case, of.message, "must", of.kafka_class, Outcome.PASSED)
    if failures:
        verdict.outcome = Outcome.FAILED
        verdict.reason = f"{len(failures)} of {len(results)} answers are not Kafka's"
        verdict.detail = {"what": "\n".join(failures)}
    elif left_out := [why for _, outcome, why in results if outcome is Outcome.NOT_APPLICABLE]:
        verdict.outcome, verdict.reason = Outcome.NOT_APPLICABLE, left_out[0]
    return verdict


def _judged(vector: Vector, direction: str, line: bytes) -> tuple[Outcome, str]:
    """Compare an answer with the vector."""
    try:
        answer = json_tree(line)
    except TreeError as error:
        return Outcome.FAILED, f"answered no JSON ({error}): {_shown(line.decode(errors='replace'))}"
    if not isinstance(answer, dict) or len(answer) != 1 or next(iter(answer)) not in _ANSWERS:
        return Outcome.FAILED, f"an answer is one of {', '.join(_ANSWERS)}, not {_shown(json.dumps(answer))}"
    ((name, value),) = answer.items()
    if name == "unsupported":
        return Outcome.NOT_APPLICABLE, f"unsupported: {_shown(str(value))}"
    if vector.kind == MALFORMED:
        read = f"answered {_shown(json.dumps(answer))}, and Kafka refuses the bytes: {vector.error}"
        return (Outcome.PASSED, "") if name == "error" else (Outcome.FAILED, read)
    if name == "error":
        return Outcome.FAILED, f"refused: {_shown(str(value))}"
    if direction == "encode":
        if name == "hex" and value == vector.hex:
            return Outcome.PASSED, ""
        return Outcome.FAILED, f"Kafka's bytes are {_shown(vector.hex)}, not {_shown(str(value))}"
    if name != "json":
        return Outcome.FAILED, f"bytes are decoded to json, not {_shown(json.dumps(answer))}"
    # Names of unknown fields are the codec's own: Kafka's JSON has none.
    form = dict if vector.kind == UNKNOWN_TAGS else Only
    first = difference(json.loads(json.dumps(vector.json), object_hook=form), value)
    if first is None:
        return Outcome.PASSED, ""
    place = first.path or "the message"
    return Outcome.FAILED, f"{place} should be {_shown(shown(first.expected))}, is {_shown(shown(first.got))}"


_ANSWERS: Final = ("json", "hex", "error", "unsupported")


def _shown(text: str) -> str:
    return printable_line(text, _SHOWN_MAX)


async def _answers(
    command: Sequence[str], questions: Sequence[Question], timeout_s: float
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of the program, one for each question. _EndedError when it ends or is silent."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=ANSWER_BYTES_MAX,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    feeding = asyncio.create_task(_feed(process.stdin, questions))
    try:
        for _ in questions:
            try:
                async with asyncio.timeout(timeout_s):
                    line = await process.stdout.readline()
                    if not line.endswith(b"\n"):
                        code = await process.wait()
                        raise _EndedError(f"the program ended with exit code {code} before it answered")
            except TimeoutError:
                raise _EndedError(f"the program gave no answer within {timeout_s:g} s") from None
            except ValueError:
                raise _EndedError(f"the program answered a line of over {ANSWER_BYTES_MAX:,} bytes") from None
            yield line
    finally:
        feeding.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _feed(stdin: asyncio.StreamWriter, questions: Iterable[Question]) -> None:
    """Write the questions as fast as the program reads them, and end its input."""
    with contextlib.suppress(ConnectionError):
        for question in questions:
            stdin.write(question.text())
            await stdin.drain()
        stdin.close()
