"""Failures without secrets: a controller may answer with passwords, keys and sensitive configs of its cluster."""

from __future__ import annotations

import re

from mockraft.conformance.expectation import FirstDifference, NotAsExpectedError, OneOf
from mockraft.wire.json_form import Json
from mockraft.wire.redaction.masks import HIDDEN
from mockraft.wire.redaction.messages import without_secrets

_STEP = re.compile(r"[^.\[\]]+")


def plain(tree: object) -> Json:
    """Return an expectation as plain JSON."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [plain(each) for each in tree]
    return repr(tree) if isinstance(tree, OneOf) else tree  # type: ignore[return-value]  # as the cases write it


def without_its_secrets(error: NotAsExpectedError) -> NotAsExpectedError:
    """Return the failure with `[hidden]` for secrets in both trees and at the first difference."""
    path = error.first.path
    expected, got = plain(error.expected), plain(error.got)
    hidden_expected, hidden_got = without_secrets(expected), without_secrets(got)
    pairs = ((expected, hidden_expected), (got, hidden_got))
    if any(_at(tree, path) != HIDDEN == _at(found, path) for tree, found in pairs):
        first = FirstDifference(path, HIDDEN, HIDDEN)
    else:
        first = FirstDifference(path, _hidden(error.first.expected), _hidden(error.first.got))
    return NotAsExpectedError(error.what, hidden_expected, hidden_got, first)


def _hidden(value: object) -> object:
    return value if isinstance(value, OneOf) else without_secrets(plain(value))


def _at(tree: Json, path: str) -> Json:
    """Return the value at a path such as `topics[0].errorCode`, None if there is none."""
    found = tree
    for step in _STEP.findall(path):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list):
            index = int(step)
            found = found[index] if index < len(found) else None
        else:
            return None
    return found
