"""Kafka's messages in the versions of every supported release: what captures and `decode` read.

A version of a message has the same bytes in every release, so the newest release's spec of a message is given the
versions that it has dropped (KIP-896), with the fields that only those have; 3.7 has every version since 0.9. Messages
that are gone altogether keep the spec of the last release that had them (`LeaderAndIsrRequest`, with ZooKeeper).
Early-access messages that changed within a version are read as newer releases write them: `ConsumerGroupHeartbeat` 0
before 3.7, `ConsumerGroupDescribeResponse` 0 after it and `ReadShareGroupStateSummaryResponse` 0 after 4.0.

A class is made when a frame first needs it, and messages that have dropped no version keep their generated class.
"""

from __future__ import annotations

import json
from functools import cache

from mockraft.codegen.merge import Tree, fields_by_name
from mockraft.codegen.overlay import overlaid
from mockraft.codegen.parse import parse, parse_json
from mockraft.codegen.versions import Versions
from mockraft.releases import SUPPORTED, release
from mockraft.wire import overlay
from mockraft.wire.overlay import Overlay


def in_use() -> Overlay:
    """Return the overlay of the enclosing `using` block; without one, the messages of every release."""
    found = overlay.in_use()
    return every_release() if found is overlay.SHIPPED else found


@cache
def every_release() -> Overlay:
    """Return Kafka's messages with the versions of all supported releases."""
    return Overlay(overlaid(parse(json.dumps(tree), name), tree, "every_release") for name, tree in _trees().items())


def _trees() -> dict[str, Tree]:
    """Return the specs that have more versions than the newest release's, by name."""
    newest, *older = (release(version).specs for version in reversed(SUPPORTED))
    known = {str(tree["name"]): tree for path, text in newest.items() if _valid(tree := parse_json(text, path))}
    numbers = {_number(tree): name for name, tree in known.items()}
    found: dict[str, Tree] = {}
    newer = newest
    for texts in older:
        for path, text in texts.items():
            if text is newer.get(path) or not (valid := _valid(tree := parse_json(text, path))):
                continue
            name = str(tree["name"])
            # An API that was only renamed is known by its number (ListClientMetricsResources).
            if tree["type"] in ("request", "response") and numbers.setdefault(_number(tree), name) != name:
                continue
            if name not in known:
                known[name] = found[name] = tree
            elif dropped := range(valid.start, _valid(known[name]).start):
                known[name] = found[name] = _widened(known[name], tree, dropped)
        newer = texts
    return found


def _widened(newer: Tree, older: Tree, dropped: range) -> Tree:
    """Return the newer spec with these versions of the older one."""
    return newer | {
        "validVersions": f"{dropped.start}-{_valid(newer).stop - 1}",
        "fields": [*_fields(newer, older, Versions(dropped.start, dropped.stop - 1))],
    }


def _fields(newer: Tree, older: Tree, dropped: Versions) -> list[Tree]:
    """Return the fields of a struct with those that only dropped versions have, each where the older spec has it."""
    found = fields_by_name(newer)
    names = list(found)
    at = 0
    for name, field in fields_by_name(older).items():
        versions = Versions.parse(str(field["versions"])).intersect(dropped)
        if name in found:
            at = names.index(name) + 1
            if "fields" in field:
                found[name] = found[name] | {"fields": [*_fields(found[name], field, dropped)]}
        elif not versions.empty:
            found[name] = field | {"versions": str(versions)}
            names.insert(at, name)
            at += 1
    return [found[name] for name in names]


def _valid(tree: Tree) -> range:
    """Return the versions of a message; none for one whose spec is only a reminder."""
    return Versions.parse(str(tree["validVersions"])).numbers()


def _number(tree: Tree) -> tuple[object, object]:
    return tree["type"], tree.get("apiKey")
