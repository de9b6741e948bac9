"""Three-way merge of two changes of one message, on the JSON trees of its spec."""

from __future__ import annotations

from mockraft.codegen.spec import SpecError
from mockraft.wire.json_form import Json

Tree = dict[str, Json]

_ONLY_WORDS = {"about"}


def merge(base: Tree, ours: Tree, theirs: Tree, who: str, where: str = "") -> Tree:
    """Merge the changes of `ours` and `theirs` to `base`. Raises SpecError with `who` and the key for a conflict.

    A field that one side removes is removed; one that a side adds comes after the field it comes after there.
    """
    where = where or str(theirs.get("name", ""))
    merged = dict(ours)
    for key in [*theirs, *(key for key in base if key not in theirs)]:
        if key == "fields":
            continue
        old, mine, new = base.get(key), ours.get(key), theirs.get(key)
        if new in (old, mine):
            continue
        if mine != old and key not in _ONLY_WORDS:
            raise SpecError(f"{who}: both change {where}: {key} to {mine} and to {new}; use one of them at a time")
        if new is None:
            del merged[key]
        else:
            merged[key] = new
    if "fields" in ours or "fields" in theirs:
        merged["fields"] = [*_merged_fields(base, ours, theirs, who, where)]
    return merged


def _merged_fields(base: Tree, ours: Tree, theirs: Tree, who: str, where: str) -> list[Tree]:
    old, mine, new = (fields_by_name(tree) for tree in (base, ours, theirs))
    names = [name for name in mine if name in new or name not in old]
    for place, name in enumerate(new):
        if name not in mine and name not in old:
            before = list(new)[place - 1] if place else None
            names.insert(names.index(before) + 1 if before in names else len(names), name)
    fields = []
    for name in names:
        if name in mine and name in new:
            fields.append(merge(old.get(name, {}), mine[name], new[name], who, f"{where}.{name}"))
        else:
            fields.append(mine.get(name) or new[name])
    return fields


def fields_by_name(tree: Tree) -> dict[str, Tree]:
    """Return the fields of a message or struct in their order, without those that are no objects."""
    fields = tree.get("fields")
    return {str(f["name"]): f for f in fields if isinstance(f, dict)} if isinstance(fields, list) else {}
