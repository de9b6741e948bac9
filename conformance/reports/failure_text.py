"""A failed case as text: the request, the expected and the actual response, and their first difference."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mockraft.conformance.verdicts import Verdict
from mockraft.wire import error_codes

_WIDTH = 110
_ERROR_CODE = "errorCode"


def lines(verdict: Verdict) -> Iterator[str]:
    """Return the lines that explain a failure, without its name."""
    yield verdict.reason
    detail = verdict.detail
    if requests := [each for each in detail.get("story", ()) if "api" in each]:
        last = requests[-1]
        yield f"after {last['api']} {_compact(last['request'])}"
    if "expected" in detail:
        yield from _block("expected", detail["expected"])
        yield from _block("got", detail["got"])
    elif detail.get("what"):
        yield from str(detail["what"]).rstrip().splitlines()


def named_codes(tree: object) -> object:
    """Return the tree with Kafka's names next to error codes: `"errorCode": "36 TOPIC_ALREADY_EXISTS"`."""
    if isinstance(tree, list):
        return [named_codes(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        key: f"{value} {error_codes.name(value)}"
        if key == _ERROR_CODE and isinstance(value, int)
        else named_codes(value)
        for key, value in tree.items()
    }


def _block(title: str, tree: object) -> Iterator[str]:
    text = _compact(tree)
    if len(text) + len(title) + 2 <= _WIDTH:
        yield f"{title}: {text}"
        return
    yield f"{title}:"
    for line in json.dumps(named_codes(tree), ensure_ascii=False, indent=1).splitlines():
        yield f"  {line}"


def _compact(tree: object) -> str:
    return json.dumps(named_codes(tree), ensure_ascii=False)
