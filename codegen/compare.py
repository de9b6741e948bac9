"""`python -m mockraft.codegen compare OLD NEW`: the differences between two releases' specs."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from mockraft.codegen.parse import load_json
from mockraft.releases.specs import FOLDERS
from mockraft.wire.json_form import Json

Spec = Mapping[str, Json]

MESSAGE_KEYS = ("apiKey", "type", "listeners", "validVersions", "flexibleVersions", "latestVersionUnstable")
FIELD_KEYS = ("type", "versions", "nullableVersions", "taggedVersions", "tag", "default", "ignorable", "mapKey")


def main(arguments: list[str]) -> int:
    """Run the subcommand; return its exit code: 0 with or without differences, 2 for a folder that is not a release."""
    parser = argparse.ArgumentParser(
        prog="python -m mockraft.codegen compare",
        description="List the differences between two releases: messages, versions, fields, error codes.",
        epilog="example: python -m mockraft.codegen compare 4.1.1 4.3.1 --json",
    )
    parser.add_argument("old", help="a release under schemas_json, or a folder with message/ and metadata/")
    parser.add_argument("new", help="the same")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    options = parser.parse_args(arguments)
    try:
        old, new = (read_release(release_folder(name)) for name in (options.old, options.new))
    except FileNotFoundError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    moved = list(compare(old, new))
    if options.json:
        print(json.dumps({"old": options.old, "new": options.new, "moved": moved}, indent=2))
        return 0
    for change in moved:
        print(f"{change['where']}: {change['what']}")
    print(f"{len(moved)} differences between {options.old} and {options.new}")
    return 0


def release_folder(name: str) -> Path:
    """Return the folder of a release name or path. Raises FileNotFoundError, naming the folders that were tried."""
    for folder in (Path(name), Path("schemas_json") / name):
        if (folder / "message").is_dir():
            return folder
    raise FileNotFoundError(
        f"{name} is neither a folder with message/ nor a release in schemas_json "
        f"(fetch it: python -m mockraft.codegen sync --kafka-version {name})"
    )


def read_release(folder: Path) -> dict[str, dict[str, Json]]:
    """Read a release folder as {spec name: its JSON}, with its error codes under `errors.json`."""
    specs = {path.stem: load_json(path) for part in FOLDERS for path in folder.glob(f"{part}/*.json")}
    errors = folder / "errors.json"
    if errors.is_file():
        specs["errors.json"] = {str(error["code"]): error["name"] for error in json.loads(errors.read_text())}
    return specs


def compare(old: Mapping[str, Spec], new: Mapping[str, Spec]) -> Iterator[dict[str, str]]:
    """Yield one {where, what} for each difference, in the order of the spec names."""
    old_errors, new_errors = old.get("errors.json", {}), new.get("errors.json", {})
    for name in sorted((old.keys() | new.keys()) - {"errors.json"}):
        if name not in old or name not in new:
            there = old.get(name) or new[name]
            verb = "added" if name in new else "removed"
            yield {"where": name, "what": f"{verb}, versions {there['validVersions']}"}
            continue
        yield from _compare_keys(name, old[name], new[name], MESSAGE_KEYS)
        yield from _compare_fields(name, _fields(old[name]), _fields(new[name]))
    for code in sorted(old_errors.keys() | new_errors.keys(), key=int):
        if old_errors.get(code) != new_errors.get(code):
            yield {"where": f"error {code}", "what": f"{old_errors.get(code, 'none')} → {new_errors.get(code, 'none')}"}


def _compare_fields(name: str, old: Mapping[str, Spec], new: Mapping[str, Spec]) -> Iterator[dict[str, str]]:
    for path in [*old, *(path for path in new if path not in old)]:
        where = f"{name}.{path}"
        if path not in new:
            yield {"where": where, "what": "removed"}
        elif path not in old:
            yield {"where": where, "what": f"added, {new[path]['type']} in versions {new[path]['versions']}"}
        else:
            yield from _compare_keys(where, old[path], new[path], FIELD_KEYS)


def _compare_keys(where: str, old: Spec, new: Spec, keys: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for key in keys:
        if old.get(key) != new.get(key):
            yield {"where": where, "what": f"{key} {_shown(old.get(key))} → {_shown(new.get(key))}"}


def _shown(value: object) -> str:
    return "unset" if value is None else str(value)


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
