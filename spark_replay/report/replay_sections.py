"""The replay part of the page: outcomes, differences with their first examples, rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import Any

import pyarrow.dataset as ds
from mockraft.spark_replay.report.captured import Frames
from mockraft.spark_replay.report.examples import (
    Command,
    api_name,
    decode_command,
    noted,
    request_text,
    response_text,
    side_by_side,
)
from mockraft.spark_replay.report.replayed import Place, Replayed
from mockraft.spark_replay.report.sections import milliseconds
from mockraft.spark_replay.report.sources import Folder, rows_where
from mockraft.wire import api_keys

EXAMPLES_SHOWN = 25
PLACES_MAX = 500
_COUNTS = ("sent", "same", "identical", "different", "noAnswer", "leftOut")
_SHOWN = ("session", "number", "path", "expected", "actual", "rule")
_ANSWERS = ["session", "number", "api_key", "api_version", "captured_response", "live_response"]


def shown_examples(replayed: Replayed) -> list[tuple[Place, dict[str, Any]]]:
    """Return the first examples of the most frequent differences."""
    places = [place for place, _ in replayed.found if place in replayed.examples]
    return [(place, replayed.examples[place]) for place in places[:EXAMPLES_SHOWN]]


def replay_totals(replayed: Replayed) -> dict[str, object]:
    """Return the totals, and a row for each API."""
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for (key, status, equal, raw_equal), count in replayed.outcomes.counts.items():
        row = counts[key]
        if status == "left_out":
            row["leftOut"] += count
            continue
        row["sent"] += count
        row["noAnswer" if status != "ok" else "same" if equal else "different"] += count
        row["identical"] += count if status == "ok" and raw_equal else 0
    return {
        "sent": replayed.sent,
        "same": replayed.same,
        "sessions": len(replayed.sessions.counts),
        "modes": [mode for mode, _ in replayed.modes.most_common(5) if mode],
        "runs": [run for run, _ in replayed.runs.most_common(5) if run],
        "apis": [
            {
                "api": api_name(key),
                **{name: row[name] for name in _COUNTS},
                "capturedMs": milliseconds(replayed.captured_ns.get(key)),
                "liveMs": milliseconds(replayed.live_ns.get(key)),
            }
            for key, row in sorted(counts.items(), key=lambda item: -item[1]["sent"])
        ],
        "unanswered": [
            {"api": api_name(key), "status": status, "detail": detail, "count": count}
            for (key, status, detail), count in replayed.unanswered.most_common(50)
        ],
    }


def differences(replayed: Replayed) -> list[dict[str, object]]:
    """Return a row for each API and path with counts of changed, missing, extra and order; most frequent first."""
    kinds: defaultdict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    examples: dict[tuple[int, str], dict[str, object]] = {}
    for (key, path, kind), count in replayed.found[:PLACES_MAX]:
        kinds[key, path][kind] = count
        if (example := replayed.examples.get((key, path, kind))) is not None:
            examples.setdefault((key, path), {name: example[name] for name in _SHOWN})
    return [
        {
            "api": api_name(key),
            "path": path,
            "total": sum(counts.values()),
            "kinds": counts,
            "example": examples.get((key, path)),
        }
        for (key, path), counts in sorted(kinds.items(), key=lambda item: -sum(item[1].values()))
    ]


def rules(replayed: Replayed, listed: list[dict[str, Any]] | None) -> dict[str, object]:
    """Return how often rules fired, if the user's own did, and those that never did (None if the replay did not
    record its rules).
    """
    fired = [{"rule": rule, "fired": count} for rule, count in replayed.rules.most_common(200)]
    if listed is None:
        return {"fired": fired, "own": False, "never": None, "count": None}
    never = [row for row in listed if not row.get("fired") and row["rule"] not in replayed.rules.counts]
    counted = [row for row in listed if row.get("fired")]
    fired_rows = [{"rule": row["rule"], "fired": row["fired"]} for row in counted] if counted else fired
    own = any(row.get("override") for row in counted)
    ordered = sorted(fired_rows, key=lambda row: -row["fired"])
    return {"fired": ordered, "own": own, "never": never, "count": len(listed)}


def decoded_examples(
    replayed: Replayed, folder: Folder, requests: Frames, *, show_secrets: bool
) -> list[dict[str, object]]:
    """Return the examples with request and both responses decoded, and commands that show the same.

    Raises SourceError.
    """
    examples = shown_examples(replayed)
    if not examples:
        return []
    condition = ds.field("number").isin(sorted({row["number"] for _, row in examples})) & ds.field("session").isin(
        sorted({row["session"] for _, row in examples})
    )
    rows = rows_where(folder, "replay_results", condition, _ANSWERS, 100 * EXAMPLES_SHOWN)
    answers = {(row["session"], row["number"]): row for row in rows}
    by_exchange: dict[tuple[str, int], dict[str, object]] = {}
    places: defaultdict[tuple[str, int], list[dict[str, object]]] = defaultdict(list)
    for (_, _, kind), row in examples:
        exchange = (row["session"], row["number"])
        answer = answers.get(exchange)
        if exchange not in by_exchange and answer is not None:
            request = requests.get((row["conn_id"], row["incarnation"], row["request_frame_no"], False))
            counted = _counted(replayed, answer["api_key"])
            example = _example(answer, request, counted, show_secrets=show_secrets)
            by_exchange[exchange] = example | {"places": places[exchange]}
        places[exchange].append(
            {"path": row["path"], "kind": kind, "expected": row["expected"], "actual": row["actual"]}
        )
    return list(by_exchange.values())


def _counted(replayed: Replayed, key: int) -> list[str]:
    """Return the paths of an API at which differences count; all in an Envelope, whose response is shown as bytes."""
    return [""] if key == api_keys.ENVELOPE else [path for (of, path, _), _ in replayed.found if of == key]


def _example(
    answer: dict[str, Any], request: bytes | None, counted: list[str], *, show_secrets: bool
) -> dict[str, object]:
    key, version = answer["api_key"], answer["api_version"]
    captured, live = answer["captured_response"], answer["live_response"]
    decode = partial(decode_command, api_key=key, api_version=version, show_secrets=show_secrets)
    commands = [
        Command("the request", decode(request, is_response=False)),
        Command("the captured response", decode(captured, is_response=True)),
        Command("the live response", decode(live, is_response=True)),
    ]
    left, right = (response_text(each, key, version, show_secrets=show_secrets) for each in (captured, live))
    lines = side_by_side(left, right, counted)
    return {
        "api": api_name(key),
        "version": version,
        "session": answer["session"],
        "number": answer["number"],
        "request": request_text(request, show_secrets=show_secrets),
        "lines": [(line, noted(line.left), noted(line.right)) for line in lines],
        "commands": [command for command in commands if command.text],
    }
