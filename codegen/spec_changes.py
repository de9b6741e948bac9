"""Differences between two releases: message specs, field by field, and what Kafka's classes say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mockraft.codegen.parse import parse_json
from mockraft.releases import Release
from mockraft.releases.changes import NONE, Change, fact_changes
from mockraft.wire.json_form import Json

Spec = Mapping[str, Json]

MESSAGE_KEYS = ("apiKey", "type", "listeners", "validVersions", "flexibleVersions", "latestVersionUnstable")
FIELD_KEYS = ("type", "versions", "nullableVersions", "taggedVersions", "tag", "default", "ignorable", "mapKey")


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
