"""JSON, YAML and TOML from people: what any of them may hold, in bounded time, or the line and the reason why not.

Whatever the form, the result is a tree of JSON: texts that UTF-8 can write, finite numbers of some digits, distinct
keys, and a bounded depth, so that no reader of a tree has to expect another.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from mockraft.files.given_files import TEXT_BYTES_MAX, read_text

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

DEPTH_MAX: Final = 100
DIGITS_MAX: Final = 40
YAML_NODES_MAX: Final = 250_000
"""Maximum number of values in YAML, after every alias (`*name`) is expanded: some seconds."""
_YAML: Final = "tag:yaml.org,2002:"
_KEY_TAGS: Final = (f"{_YAML}str", f"{_YAML}merge")


class TreeError(ValueError):
    """A text is no tree; the message has the line, where it is known, and the reason."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.line = line


class GivenFileError(ValueError):
    """A file cannot be used; the text has the file, the place in it and the reason."""

    @classmethod
    def of(cls, path: str | os.PathLike[str], error: Exception) -> GivenFileError:
        """Return the error of a file that cannot be read, or whose content is wrong."""
        reason = getattr(error, "strerror", None) or error
        between = ", " if isinstance(error, TreeError) and error.line is not None else ": "
        return cls(f"{os.fspath(path)}{between}{reason}")


class NoYamlError(GivenFileError):
    """A YAML file cannot be read without PyYAML."""


@dataclass(frozen=True, slots=True)
class GivenTree:
    """The tree of a file; `root` is its YAML node, which knows lines."""

    path: Path
    tree: Any
    root: Node | None = None

    def error(self, reason: object, field: str) -> GivenFileError:
        """Return the error about a field, such as `stubs[0].match`."""
        line = "" if self.root is None else f", line {_line(self.root, field)}"
        return GivenFileError(f"{self.path}{line}: {reason}")


def read_tree(path: Path, form: str = ".json", size_max: int = TEXT_BYTES_MAX) -> GivenTree:
    """Read a file as JSON, YAML or TOML by its name, else in this form. GivenFileError; NoYamlError without PyYAML."""
    suffix = path.suffix.lower()
    try:
        text = read_text(path, size_max)
        if suffix in (".yaml", ".yml") or (form == ".yaml" and suffix != ".json"):
            return GivenTree(path, *_yaml_tree(path, text))
        is_toml = ".toml" in (suffix, form) and suffix != ".json"
        return GivenTree(path, toml_tree(text) if is_toml else json_tree(text))
    except (OSError, TreeError) as error:
        raise GivenFileError.of(path, error) from None


def json_tree(text: str | bytes, *, keys_repeat: bool = False) -> Any:
    """Return the tree of a JSON text; if `keys_repeat`, the last value of a key counts. TreeError."""
    try:
        given = text if isinstance(text, str) else text.decode("utf-8")
        tree = json.loads(
            given,
            object_pairs_hook=dict if keys_repeat else _without_doubles,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        raise TreeError(f"not JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise TreeError("not JSON: it is nested too deep") from None
    except ValueError as error:
        raise TreeError(f"not JSON: {error}") from None
    return _checked(tree, "JSON")


def toml_tree(text: str) -> dict[str, object]:
    """Return the tree of a TOML text. TreeError."""
    try:
        tree = tomllib.loads(text, parse_float=_number)
    except RecursionError:
        raise TreeError("not TOML: it is nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        raise TreeError(f"not TOML: {error}") from None
    except ValueError:
        raise TreeError("not TOML: a number of too many digits") from None
    _checked(tree, "TOML")
    return tree


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        seen: set[str] = set()
        double = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{double}: the key is there twice")
    return tree


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:DIGITS_MAX]} is no number that can be used")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _checked(tree: object, form: str) -> object:
    """Return a tree. TreeError if it is deep, or has a text that is no UTF-8 or a number that is too long."""
    level: list[object] = [tree]
    for _ in range(DEPTH_MAX):
        inner: list[object] = []
        for each in level:
            if isinstance(each, str):
                if not each.isascii():
                    _check_text(each, form)
            elif isinstance(each, Mapping):
                inner += each
                inner += each.values()
            elif isinstance(each, list):
                inner += each
            elif not isinstance(each, int | float | None):
                raise TreeError(f"{type(each).__name__} {each} is no {form} of texts and numbers: put it in quotes")
            elif isinstance(each, float) and not math.isfinite(each):
                raise TreeError(f"not {form}: {each} is no number that can be used")
            elif isinstance(each, int) and abs(each) >= 10**DIGITS_MAX:
                raise TreeError(f"not {form}: a number that is too large")
        if not inner:
            return tree
        level = inner
    raise TreeError(f"not {form}: it is nested too deep")


def _check_text(text: str, form: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TreeError(f"not {form}: lone surrogate") from None


def _yaml_tree(path: Path, text: str) -> tuple[object, Node | None]:
    """Return the tree of a YAML text, and its root node."""
    try:
        import yaml
    except ImportError:
        about = "YAML needs PyYAML: pip install 'mockraft[admin]', or write the file as JSON"
        raise NoYamlError(f"{path}: {about}") from None
    loader = _loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        _check_events(text, loader)
        reading = loader(text)
        root: Node | None = reading.get_single_node()
        if root is None:
            return None, None
        _check_node(root, {})
        return _checked(reading.construct_document(root), "YAML"), root
    except yaml.MarkedYAMLError as error:
        raise TreeError(f"not YAML: {error.problem}", _line_of(error.problem_mark)) from None
    except yaml.YAMLError as error:
        raise TreeError(f"not YAML: {' '.join(str(error).split())}") from None
    except TreeError:
        raise
    except (ValueError, LookupError) as error:  # the latter of `!!bool maybe` and `!!int ""`
        raise TreeError(f"not YAML: a value is not of its tag's type: {error}") from None


def _line_of(mark: object) -> int | None:
    line: int | None = getattr(mark, "line", None)
    return None if line is None else line + 1


def _loader(base: type[SafeLoader]) -> Any:
    """Return a loader that makes JSON only: tags of other types are errors, times are texts."""
    kinds = ("null", "bool", "int", "float", "str", "seq", "map")
    made: dict[str | None, object] = {kind: base.yaml_constructors[kind] for kind in map(f"{_YAML}{{}}".format, kinds)}
    made |= {f"{_YAML}timestamp": made[f"{_YAML}str"], None: base.yaml_constructors[None]}
    return type("JsonLoader", (base,), {"yaml_constructors": made})


def _check_events(text: str, loader: type[SafeLoader]) -> None:
    """Raise TreeError for YAML that is deep or large, which would take long to compose."""
    import yaml

    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise TreeError("not YAML: it is nested too deep", _line_of(event.start_mark))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if number > 2 * YAML_NODES_MAX:
            raise TreeError(f"too large: more than {YAML_NODES_MAX:,} values; write JSON", _line_of(event.start_mark))


def _check_node(node: Node, sizes: dict[int, int]) -> int:
    """Count the values of a YAML node; `sizes` has those of earlier nodes, 0 for the open ones. TreeError."""
    size = sizes.get(id(node))
    if size is None:
        sizes[id(node)] = 0
        pairs = [each for each in node.value if isinstance(each, tuple)]
        _check_keys([key for key, _ in pairs])
        if node.tag in (f"{_YAML}int", f"{_YAML}float") and len(node.value) > DIGITS_MAX:
            raise TreeError(f"not YAML: a number of {len(node.value):,} digits", node.start_mark.line + 1)
        parts = [part for pair in pairs for part in pair] or [each for each in node.value if not isinstance(each, str)]
        size = sizes[id(node)] = 1 + sum(_check_node(part, sizes) for part in parts)
    if size == 0:
        raise TreeError("an alias refers to a node that contains it", node.start_mark.line + 1)
    if size > YAML_NODES_MAX:
        raise TreeError(f"too large: {size:,} values with its aliases expanded", node.start_mark.line + 1)
    return size


def _check_keys(keys: list[Node]) -> None:
    """Make the keys of a mapping texts, or raise TreeError."""
    seen: set[str] = set()
    for key in keys:
        if not isinstance(key.value, str):
            raise TreeError("a key is no text", key.start_mark.line + 1)
        if key.tag == f"{_YAML}int" and key.value.isdecimal():
            key.tag = f"{_YAML}str"  # as in JSON
        if key.tag not in _KEY_TAGS:
            # YAML reads a plain `on` or `yes` as a boolean, which JSON has not as a key.
            raise TreeError(f"the key {key.value!r} is no text: put it in quotes", key.start_mark.line + 1)
        if key.value in seen:
            raise TreeError(f"the key {key.value!r} is there twice", key.start_mark.line + 1)
        seen.add(key.value)


def _line(root: Node, field: str) -> int:
    """Return the line of a field (`stubs[0].match`), or of the innermost part of its path that is found."""
    node, line = root, root.start_mark.line
    for part in re.findall(r"[^.\[\]]+", field):
        pairs = [each for each in node.value if isinstance(each, tuple)]
        if pairs:
            found = [(key.start_mark.line, value) for key, value in pairs if key.value == part]
            if not found:
                break
            line, node = found[0]
        elif isinstance(node.value, list) and part.isdecimal():
            node = node.value[int(part)]
            line = node.start_mark.line
    return line + 1
