"""Rules as a TOML file: write the generated ones to look at, and read a user's overrides.

[[rule]]
api = "BrokerHeartbeat"      # or "*"
path = "isFenced"            # array elements as []; * is a wildcard
class = "ignored"
versions = "0-1"             # optional, as in Kafka's schemas: 1, 0-2, 3+
why = "fencing is late on a busy machine"
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path

from mockraft.spark_replay.regression.classes import ANY_ORDER, CLASSES
from mockraft.spark_replay.regression.rules import Override, Rule, RuleError, Rules
from mockraft.wire.names import did_you_mean
from mockraft.wire.schema_files import Versions

_KEYS = {"api", "path", "class", "versions", "why"}


def read_rules(path: str | PathLike[str]) -> Rules:
    """Return the generated rules with a file's overrides; if several match a field, the last one counts.

    Raises RuleError for invalid TOML or an invalid entry, and OSError.
    """
    try:
        tree = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RuleError(f"not valid TOML: {error}") from None
    return rules_of(tree)


def rules_of(tree: Mapping[str, object]) -> Rules:
    """Return the rules with the overrides of a parsed file."""
    unknown = set(tree) - {"rule"}
    if unknown:
        raise RuleError(f"a rules file contains only [[rule]] tables, not {', '.join(sorted(unknown))}")
    entries = tree.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise RuleError("rules are an array of tables: [[rule]], not [rule]")
    overrides = []
    for number, entry in enumerate(entries, start=1):
        try:
            overrides.append(_override(entry))
            Rules(overrides[-1:])
        except RuleError as error:
            raise RuleError(f"rule {number}: {error}") from None
    return Rules(overrides)


def _override(entry: Mapping[str, object]) -> Override:
    if unknown := set(entry) - _KEYS:
        raise RuleError(f"has no key {', '.join(sorted(unknown))}; its keys are {', '.join(sorted(_KEYS))}")
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    for key in entry.keys() - texts.keys():
        raise RuleError(f"{key} must be a string, not {entry[key]!r}")
    for key in ("api", "path", "class"):
        if not texts.get(key):
            raise RuleError(f"{key} is missing")
    if texts["class"] not in CLASSES:
        raise RuleError(f"there is no class {texts['class']!r}; {did_you_mean(texts['class'], sorted(CLASSES))}")
    try:
        versions = Versions.parse(texts.get("versions", "0+"))
    except ValueError:
        raise RuleError(f"versions must be like 1, 0-2 or 3+, not {texts['versions']!r}") from None
    return Override(texts["api"], texts["path"], texts["class"], versions, texts.get("why", ""))


def write_rules(rules: Iterable[Rule]) -> Iterator[str]:
    """Yield the lines of a rules file equivalent to `rules`."""
    api = None
    for rule in rules:
        if rule.api != api:
            api = rule.api
            yield f"\n# {api}"
        low, high = rule.versions
        versions = f"{low}" if low == high else f"{low}-{high}"
        yield "[[rule]]"
        yield f'api = "{rule.api}"'
        yield f'path = "{rule.path}"'
        yield f'versions = "{versions}"'
        yield f'class = "{rule.kind}"' + ("  # elements are identified by name or number" * (rule.kind == ANY_ORDER))
        if rule.why:
            yield f"why = {json.dumps(rule.why, ensure_ascii=False)}"
