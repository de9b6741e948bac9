"""Compare two responses to the same request, field by field, by the rules.

A difference excused by a rule is recorded as well, with kind `volatile_ok` and the rule's name. So rules that were
never needed can be found, and it is visible why two responses with different bytes count as equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mockraft.spark_replay.regression.classes import (
    ANY_ORDER,
    COMPARED,
    ELECTION_ERRORS,
    ERROR_TEXT,
    IGNORED,
    MANY_TO_ONE,
    MASKED,
    ONE_TO_ONE,
    ONLY_WHETHER,
    QUORUM_ERROR,
)
from mockraft.spark_replay.regression.renaming import Id, Renaming
from mockraft.spark_replay.regression.rules import Rule, RuleNode
from mockraft.wire import error_codes
from mockraft.wire.json_form import Json
from mockraft.wire.redaction.masks import HIDDEN
from mockraft.wire.redaction.messages import without_secrets
from mockraft.wire.redaction.secret_fields import is_secret_path

MISSING, EXTRA, CHANGED, ORDER, VOLATILE_OK = "missing", "extra", "changed", "order", "volatile_ok"
NO_ANSWER = "(no answer)"
"""The path of the difference of an exchange whose request was not answered."""
_ERROR_CODE = "errorCode"
INDEX_OR_KEY = r"\[[^\]]*\]"
"""What names an element in a path: a regular expression of Python, Arrow and Java."""


def any_element(path: str) -> str:
    """Return a path with `[]` for each element."""
    return re.sub(INDEX_OR_KEY, "[]", path)


class Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = Absent()
"""The value of a field or element missing on one side."""


class Difference(NamedTuple):
    """One place where a live response differs from the captured one.

    `path` is like `topics[0].errorCode` (for elements with a name or number, `topics[t].errorCode`); `captured` is the
    expected value (an id's live partner if known); `rule` is empty for a plain field.
    """

    path: str
    kind: str
    captured: Json | Absent
    live: Json | Absent
    rule: str = ""

    def without_secrets(self) -> Difference:
        """Return the difference with `[hidden]` for secrets, which were compared."""
        return self._replace(captured=_shown(self.path, self.captured), live=_shown(self.path, self.live))


def diff(captured: Json, live: Json, node: RuleNode | None, renaming: Renaming, path: str = "") -> Iterator[Difference]:
    """Yield the differences of two responses' JSON trees; learn pairs of ids and epochs on the way (`renaming`).

    `node` is the response's, `Rules.response(api_key, version)`.
    """
    rule = node.rule if node else None
    kind = rule.kind if rule else ""
    name = rule.name if rule else ""
    if kind in MASKED:
        if captured != live:
            # A text for people may be absent; the presence of a time is the controller's decision.
            strict = kind not in (ERROR_TEXT, IGNORED) and (captured is None) != (live is None)
            yield Difference(path, CHANGED if strict else VOLATILE_OK, captured, live, name)
    elif kind in ONLY_WHETHER:
        if captured != live:
            same = _presence_of(captured) == _presence_of(live)
            yield Difference(path, VOLATILE_OK if same else CHANGED, captured, live, name)
    elif isinstance(captured, dict) and isinstance(live, dict):
        found = _fields(captured, live, node, renaming, path)
        error = node.fields.get(_ERROR_CODE) if node else None
        if error is None or captured.get(_ERROR_CODE) == live.get(_ERROR_CODE):
            yield from found
        else:
            yield from _beside_an_error(found, (captured.get(_ERROR_CODE), live.get(_ERROR_CODE)), error.rule, path)
    elif isinstance(captured, list) and isinstance(live, list):
        yield from _arrays(captured, live, node, renaming, path)
    elif (kind in ONE_TO_ONE or kind in MANY_TO_ONE) and isinstance(captured, Id) and isinstance(live, Id):
        holds = renaming.learn(kind, captured, live)
        if holds and captured != live:
            yield Difference(path, VOLATILE_OK, captured, live, name)
        elif not holds:
            yield Difference(path, CHANGED, renaming.pairs.get(kind, {}).get(captured, captured), live, name)
    elif captured != live:
        yield Difference(path, CHANGED, captured, live)


def _fields(
    captured: Mapping[str, Json], live: Mapping[str, Json], node: RuleNode | None, renaming: Renaming, path: str
) -> Iterator[Difference]:
    for field in (*captured, *(field for field in live if field not in captured)):
        place = f"{path}.{field}" if path else field
        inner = node.fields.get(field) if node else None
        ours, theirs = captured.get(field, ABSENT), live.get(field, ABSENT)
        if isinstance(ours, Absent) or isinstance(theirs, Absent):
            yield _one_sided(place, ours, theirs, inner)
        else:
            yield from diff(ours, theirs, inner, renaming, place)


def _beside_an_error(
    found: Iterator[Difference], codes: tuple[Json, Json], rule: Rule, path: str
) -> Iterator[Difference]:
    """Excuse what follows from another error code, by the rule of `errorCode`: only the code itself counts.

    The code does not count either if a captured election caused it.
    """
    own = f"{path}.{_ERROR_CODE}" if path else _ERROR_CODE
    captured, live = codes
    elected = rule.kind == QUORUM_ERROR and captured in ELECTION_ERRORS and live == error_codes.NONE
    applies = elected or rule.kind in (COMPARED, QUORUM_ERROR)
    for each in found:
        counts = each.kind == VOLATILE_OK or not applies or (each.path == own and not elected)
        yield each if counts else each._replace(kind=VOLATILE_OK, rule=rule.name)


def _shown(path: str, value: Json | Absent) -> Json | Absent:
    if isinstance(value, Absent):
        return value
    if value and is_secret_path(path):
        return HIDDEN
    field = path.rpartition(".")[2]
    shown: Json = without_secrets({field: value})
    assert isinstance(shown, Mapping)
    return shown[field]


def _one_sided(path: str, captured: Json | Absent, live: Json | Absent, node: RuleNode | None) -> Difference:
    excused = node is not None and (node.rule.kind in MASKED or node.rule.kind in ONLY_WHETHER)
    kind = VOLATILE_OK if excused else MISSING if live is ABSENT else EXTRA
    return Difference(path, kind, captured, live, node.rule.name if excused and node else "")


def _presence_of(value: object) -> object:
    """Return the compared part of an offset or of the log: null, -1, or that there is a value."""
    return value if value in (None, -1, ABSENT) else "present"


def _arrays(
    captured: list[Json], live: list[Json], node: RuleNode | None, renaming: Renaming, path: str
) -> Iterator[Difference]:
    keys = node.keys if node else ()
    ours, theirs = _by_key(captured, keys), _by_key(live, keys)
    if ours is None or theirs is None:
        if captured != live and len(captured) == len(live) and not any(isinstance(e, dict | list) for e in captured):
            renamed = node is not None and (node.rule.kind in ONE_TO_ONE or node.rule.kind in MANY_TO_ONE)
            if not renamed and sorted(map(repr, captured)) == sorted(map(repr, live)):
                yield _order(path, captured, live, node)
                return
        for index in range(max(len(captured), len(live))):
            place = f"{path}[{index}]"
            if index >= len(captured) or index >= len(live):
                missing = index >= len(live)
                yield _one_sided(
                    place, captured[index] if missing else ABSENT, ABSENT if missing else live[index], None
                )
            else:
                yield from diff(captured[index], live[index], node, renaming, place)
        return
    both = [key for key in ours if key in theirs]
    if both != [key for key in theirs if key in ours]:
        yield _order(path, [_text(key) for key in both], [_text(key) for key in theirs if key in ours], node)
    for key in (*ours, *(each for each in theirs if each not in ours)):
        place = f"{path}[{_text(key)}]"
        if key in both:
            yield from diff(ours[key], theirs[key], node, renaming, place)
        else:
            yield _one_sided(place, ours.get(key, ABSENT), theirs.get(key, ABSENT), None)


def _order(path: str, captured: list[Json], live: list[Json], node: RuleNode | None) -> Difference:
    excused = node is not None and node.rule.kind == ANY_ORDER
    return Difference(
        path, VOLATILE_OK if excused else ORDER, captured, live, node.rule.name if excused and node else ""
    )


def _text(key: tuple[Json, ...]) -> str:
    return ",".join(map(str, key))


def _by_key(elements: list[Json], keys: tuple[tuple[str, ...], ...]) -> dict[tuple[Json, ...], Json] | None:
    """Return the elements by their identifying fields; None if nothing identifies them."""
    structs = [each for each in elements if isinstance(each, dict)]
    for names in keys if len(structs) == len(elements) else ():
        if all(each.get(name) not in (None, "") for each in structs for name in names):
            found: dict[tuple[Json, ...], Json] = {tuple(each[name] for name in names): each for each in structs}
            return found if len(found) == len(elements) else None
    return None
