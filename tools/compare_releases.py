"""`python -m tools.compare_releases OLD NEW`: the differences between two releases, as Kafka's jars have them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from mockraft.codegen.parse import parse_json
from mockraft.releases import SUPPORTED, Release, release
from mockraft.releases.changes import NONE, Change, as_text, fact_changes
from mockraft.wire.json_form import Json

Spec = Mapping[str, Json]

MESSAGE_KEYS = ("apiKey", "type", "listeners", "validVersions", "flexibleVersions", "latestVersionUnstable")
FIELD_KEYS = ("type", "versions", "nullableVersions", "taggedVersions", "tag", "default", "ignorable", "mapKey")


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code: 0 with or without differences, 2 for a name that is not a release."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.compare_releases",
        description="List the differences between two releases: message specs, APIs on the controller's listener, "
        "features and their levels, metadata versions, configuration keys with defaults and bounds, error codes.",
        epilog=f"example: python -m tools.compare_releases {SUPPORTED[-2]} {SUPPORTED[-1]} --json",
    )
    parser.add_argument("old", help="a release (4.3 or 4.3.1), or a folder that `make sync` wrote")
    parser.add_argument("new", help="the same")
    parser.add_argument("--json", action="store_true", help="a JSON list of {kind, what, before, since}")
    options = parser.parse_args(arguments)
    try:
        old, new = (find_release(name) for name in (options.old, options.new))
    except FileNotFoundError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    found = compare(old, new)
    if options.json:
        print(json.dumps([each.as_tree() for each in found], indent=1, ensure_ascii=False))
        return 0
    for line in as_text(found):
        print(line)
    print(f"{len(found)} differences between Kafka {old.kafka_version} and {new.kafka_version}")
    return 0


def find_release(name: str) -> Release:
    """Return the release of a name, or of a folder. Raises FileNotFoundError, which tells how to fetch it.

    A folder under `schemas_json` here comes first, so that a release that was just fetched is found.
    """
    for folder in (Path(name), Path("schemas_json") / name):
        if (folder / "features.json").is_file():
            return Release(folder.resolve().name, folder.resolve().parent)
    known = {text for version in SUPPORTED for text in (version, version.rpartition(".")[0])}
    if name in known:
        return release(name)
    raise FileNotFoundError(
        f"{name} is neither a folder that `make sync` wrote nor one of {', '.join(SUPPORTED)} "
        f"(fetch it: make sync X={name})"
    )


def compare(old: Release, new: Release) -> list[Change]:
    """Return the differences between two releases, those of message specs first."""
    return [*_spec_changes(_specs(old), _specs(new)), *fact_changes(old, new)]


def _specs(of: Release) -> dict[str, Spec]:
    return {path.rpartition("/")[2].removesuffix(".json"): parse_json(text, path) for path, text in of.specs.items()}


def _spec_changes(old: Mapping[str, Spec], new: Mapping[str, Spec]) -> Iterator[Change]:
    for name in sorted(old.keys() | new.keys()):
        if name in old and name in new:
            yield from _key_changes(name, old[name], new[name], MESSAGE_KEYS)
            yield from _field_changes(name, _fields(old[name]), _fields(new[name]))
        else:
            versions = [f"versions {of[name]['validVersions']}" if name in of else NONE for of in (old, new)]
            yield Change("spec", name, *versions)


def _field_changes(name: str, old: Mapping[str, Spec], new: Mapping[str, Spec]) -> Iterator[Change]:
    for path in [*old, *(path for path in new if path not in old)]:
        where = f"{name}.{path}"
        if path in old and path in new:
            yield from _key_changes(where, old[path], new[path], FIELD_KEYS)
        else:
            kinds = [
                f"{of[path]['type']} in versions {of[path]['versions']}" if path in of else NONE for of in (old, new)
            ]
            yield Change("spec", where, *kinds)


def _key_changes(where: str, old: Spec, new: Spec, keys: tuple[str, ...]) -> Iterator[Change]:
    for key in keys:
        if old.get(key) != new.get(key):
            yield Change(
                "spec", f"{where}: {key}", *(NONE if of.get(key) is None else str(of[key]) for of in (old, new))
            )


def _fields(spec: Spec) -> dict[str, Spec]:
    """Return all fields by path, those of inner structs included."""
    found: dict[str, Spec] = {}

    def walk(fields: Json, prefix: str) -> None:
        for field in _objects(fields):
            path = f"{prefix}{field['name']}"
            found[path] = field
            walk(field.get("fields"), f"{path}.")

    walk(spec.get("fields"), "")
    for struct in _objects(spec.get("commonStructs")):
        walk(struct["fields"], f"{struct['name']}.")
    return found


def _objects(tree: Json) -> list[dict[str, Json]]:
    return [each for each in tree if isinstance(each, dict)] if isinstance(tree, list) else []


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has enough (`… | head`). Python writes the rest at its end, so it gets another place.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
