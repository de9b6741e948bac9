"""Changes of a Kafka release, for whoever votes on it: a verdict that fits on a page, or JSON.

A release is compared with the release before it: message specs, APIs, features and metadata versions, configuration
keys and error codes, as the classes of both have them; the generated readers and writers; and the methods of the
controller, each with the conformance cases whose source names it. `points` are what a voter should look at: what a
patch release should not change, what no release should take away, and a release without a metadata.version of its own.
"""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mockraft.codegen.spec_changes import compare
from mockraft.conformance.suite import all_cases
from mockraft.kafka import bytecode
from mockraft.kafka.bytecode import MethodChange
from mockraft.kafka.jars_folder import version_of
from mockraft.kafka.release_tables import sync
from mockraft.releases import METADATA_VERSION, SUPPORTED, Release
from mockraft.releases.changes import NONE, TITLES, Change, as_tables
from mockraft.wire.spec_files import sort_key

ROWS_MAX = 10
"""Changes of one kind that the page shows; --json has all."""

_PROPERTIES = "kafka/kafka-version.properties"
_LEVEL = re.compile(r"\d+")


@dataclass(frozen=True)
class Built:
    """A release as it was built: its jars, its tables, and the commit that its own classes name."""

    jars: Path
    tables: Release
    commit: str
    named: str

    @classmethod
    def read(cls, jars: Path, into: Path) -> Built:
        """Read a folder of jars. Raises KafkaUnavailableError or SyncError."""
        version = version_of(jars)
        sync(version, into, str(jars / "*"))
        with zipfile.ZipFile(jars / f"kafka-clients-{version}.jar") as archive:
            lines = archive.read(_PROPERTIES).decode().splitlines()
        properties = dict(line.split("=", 1) for line in lines if "=" in line)
        return cls(jars, Release(version, into), properties.get("commitId", "unknown"), properties.get("version", ""))

    @property
    def kafka_version(self) -> str:
        """The version in the names of its jars."""
        return self.tables.kafka_version


@dataclass(frozen=True)
class Verdict:
    """The comparison of a release with the one before it."""

    old: Built
    new: Built
    changes: Sequence[Change]
    methods: Sequence[MethodChange]
    readers: tuple[int, int]
    """Generated classes that changed, and how many there are."""

    @property
    def points(self) -> list[str]:
        """Sentences on what to look at before a vote."""
        found = [*_own_version(self.new), *_own_level(self.new.tables), *_taken_away(self.changes, self.old.tables)]
        is_patch = self.old.tables.line == self.new.tables.line
        return [*found, *(_unexpected(self) if is_patch else ())]

    def as_tree(self) -> dict[str, object]:
        """Return all as plain data for JSON."""
        methods = [{**each._asdict(), "cases": _cases(each)} for each in self.methods]
        return {
            "kafka_version": self.new.kafka_version,
            "commit": self.new.commit,
            "against": self.old.kafka_version,
            "points": self.points,
            "changes": [each.as_tree() for each in self.changes],
            "readers": {"changed": self.readers[0], "all": self.readers[1]},
            "methods": methods,
        }

    def as_markdown(self) -> str:
        """Return the page."""
        old, new = self.old.kafka_version, self.new.kafka_version
        points = self.points
        head = f"{len(points)} to look at" if points else "nothing to look at"
        parts = [f"# Kafka {new} (commit {self.new.commit}) against {old}: {head}"]
        parts += ["\n".join(f"- {each}" for each in points)] if points else []
        parts.append("## What differs")
        parts.append(self._counts())
        for kind in TITLES:
            found = [each for each in self.changes if each.kind == kind]
            if found:
                more = len(found) - ROWS_MAX
                table = as_tables(found[:ROWS_MAX], old, new).strip()
                parts.append(f"{table}\n\n{more} more: --json" if more > 0 else table)
        parts += ["## Code of the controller", "\n".join(self._code())]
        return "\n\n".join(parts) + "\n"

    def _counts(self) -> str:
        counted = ((title, sum(each.kind == kind for each in self.changes)) for kind, title in TITLES.items())
        counts = [f"{title}: {count}" for title, count in counted if count]
        changed, of_all = self.readers
        readers = f"Generated classes of messages and records: {changed} of {of_all} changed"
        return f"{', '.join(counts) or 'No spec and no table differs'}. {readers}."

    def _code(self) -> Iterator[str]:
        """Yield a line for each class, and one of the methods that no conformance case names."""
        by_class: dict[str, list[str]] = defaultdict(list)
        for each in self.methods:
            mark = {"new": "+", "gone": "-"}.get(each.change, "")
            by_class[each.of_class].append(f"{mark}{each.name}")
        for of_class, names in by_class.items():
            more = f" and {len(names) - ROWS_MAX} more" if len(names) > ROWS_MAX else ""
            yield f"- `{of_class}`: {', '.join(f'`{name}`' for name in names[:ROWS_MAX])}{more}"
        if not by_class:
            yield "No method of the controller's classes changed."
            return
        counts = {f"{each.of_class}.{each.name}": len(_cases(each)) for each in self.methods if each.change != "gone"}
        shown = [f"`{name}` ({count})" for name, count in counts.items() if count]
        bare = [f"`{name}`" for name, count in counts.items() if not count]
        yield f"\nNamed by cases of `mockraft conformance`: {', '.join(shown) or 'none'}."
        more = f" and {len(bare) - ROWS_MAX} more (--json has all)" if len(bare) > ROWS_MAX else ""
        yield f"\nNamed by no case: {', '.join(bare[:ROWS_MAX]) or 'none'}{more}."


def judge(old: Built, new: Built) -> Verdict:
    """Compare a release with the one before it. Raises KafkaUnavailableError if javap cannot."""
    readers = [bytecode.classes(each.jars, bytecode.MESSAGES) for each in (old, new)]
    return Verdict(
        old,
        new,
        compare(old.tables, new.tables),
        bytecode.method_changes(old.jars, new.jars),
        (len(bytecode.changed_classes(*readers)), len(readers[1])),
    )


def predecessor(version: str) -> str:
    """Return the release before: the patch release before it, or the newest one of the line before.

    ValueError if mockraft knows none that is older.
    """
    key = sort_key(version)
    if key[2]:
        return f"{key[0]}.{key[1]}.{key[2] - 1}"
    older = [each for each in SUPPORTED if sort_key(each) < key]
    if not older:
        raise ValueError(f"Kafka {version} has no predecessor that mockraft knows: name one with --against")
    return older[-1]


def _own_version(new: Built) -> Iterator[str]:
    if new.named != new.kafka_version:
        yield f"the jars are called {new.kafka_version}, and {_PROPERTIES} has {new.named or 'no version'}"


def _own_level(new: Release) -> Iterator[str]:
    newest = max(new.metadata_versions.values())
    own = [each.name for each in new.unstable_metadata_versions.values() if each.name.startswith(f"{new.line}-")]
    if sort_key(newest.name)[:2] < sort_key(new.line):
        unready = f"; {', '.join(own)} are not ready for production" if own else ""
        yield f"the newest metadata.version is {newest.name} ({newest.level}), none of {new.line}{unready}"


def _taken_away(found: Sequence[Change], old: Release) -> Iterator[str]:
    """Yield what a client or an operator may rely on and the newer release lacks, or has otherwise."""
    for each in found:
        if each.kind in ("api", "feature") and " to " in each.before:
            low, high = map(int, _LEVEL.findall(each.before))
            now = [int(number) for number in _LEVEL.findall(each.since)]
            if not now or now[0] > low or now[-1] < high:
                yield f"{TITLES[each.kind]}: {each.what} was {each.before}, and is {each.since}"
        elif each.kind in ("error", "config") and each.since == NONE:
            yield f"{TITLES[each.kind]}: {each.what} is gone"
        elif each.kind == METADATA_VERSION and int(_LEVEL.findall(each.what)[0]) in old.metadata_versions:
            yield f"{TITLES[each.kind]}: {each.what} was {each.before}, and is {each.since}"


def _unexpected(of: Verdict) -> list[str]:
    kinds = [kind for kind in TITLES if any(each.kind == kind for each in of.changes)]
    points = [f"a patch release changes {TITLES[kind][0].lower()}{TITLES[kind][1:]}" for kind in kinds]
    if of.readers[0] and "spec" not in kinds:
        points.append(f"{of.readers[0]} generated classes changed, and no spec: the generator did")
    return points


def _cases(changed: MethodChange) -> list[str]:
    """Return the conformance cases whose source names the method, or for a constant its class alone."""
    name = re.escape(changed.name)
    pattern = rf"\b{changed.of_class}\b(?!\.)" if " = " in changed.name else rf"\b{changed.of_class}\.{name}\b"
    return [case.name for case in all_cases() if re.search(pattern, case.source)]
