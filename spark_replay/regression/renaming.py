"""Captured and live values paired by class, over a whole run.

A controller assigns ids and epochs that differ in every run, but each captured one corresponds to one live one. Pairs
are learnt when both appear in the same place of two responses; a captured value in a later request is replaced by its
live partner. `classes` lists which classes are one to one, and why some are not.
"""

from __future__ import annotations

from mockraft.spark_replay.regression.classes import FIXED, MANY_TO_ONE, ONE_TO_ONE
from mockraft.spark_replay.regression.rules import RuleNode
from mockraft.wire.json_form import Json

Id = str | int | float | bool | None
"""A value of a JSON tree that is neither an object nor an array."""


class Renaming:
    """Pairs of captured and live values by class; `missing` holds the requested values without a partner yet."""

    def __init__(self) -> None:
        self.pairs: dict[str, dict[Id, Id]] = {}
        self._back: dict[str, dict[Id, Id]] = {}
        self.missing: set[Id] = set()

    def learn(self, kind: str, captured: Id, live: Id) -> bool:
        """Pair two values; return False if either has another partner, or is a reserved value and they differ."""
        if captured in FIXED or live in FIXED:
            return captured == live
        there = self.pairs.setdefault(kind, {}).setdefault(captured, live)
        if there != live:
            return False
        return kind in MANY_TO_ONE or self._back.setdefault(kind, {}).setdefault(live, captured) == captured

    def live(self, kind: str, captured: Id) -> Id:
        """Return the live partner; the captured value itself if none is known."""
        known = self.pairs.get(kind, {})
        if captured not in known and captured not in FIXED:
            self.missing.add(captured)
        return known.get(captured, captured)

    def bind_tree(self, tree: dict[str, Json], node: RuleNode) -> dict[str, Json]:
        """Return a message's JSON tree with live values in place of captured ones."""
        return {field: self.bind(value, node.fields.get(field)) for field, value in tree.items()}

    def bind(self, tree: Json, node: RuleNode | None) -> Json:
        """Return a request's JSON tree with live values in place of captured ones."""
        if node is None:
            return tree
        if isinstance(tree, dict):
            return {field: self.bind(value, node.fields.get(field)) for field, value in tree.items()}
        if isinstance(tree, list):
            return [self.bind(each, node) for each in tree]
        kind = node.rule.kind
        if isinstance(tree, Id) and (kind in ONE_TO_ONE or kind in MANY_TO_ONE):
            return self.live(kind, tree)
        return tree
