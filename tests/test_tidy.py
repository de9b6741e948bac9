"""Rules for the sources that no linter has."""

import ast
import gc
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from mockraft.releases import NEWEST

from .named_tests import names_in
from .selection import IN_EVERY_RUN

pytestmark = [pytest.mark.checks, pytest.mark.one_python]

ROOT = Path(__file__).parents[1]
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6
WRITTEN_BY_USERS = {
    "kafka/cluster.py __init__": "a cluster of Kafka's own brokers in one call",
    "kafka/cluster_tests.py run_cluster_tests": "the options of `mockraft cluster-tests`",
    "kafka/processes.py __init__": "a broker's own settings, and where its controller is",
    "server/stubs/faults/chaos.py chaos": "the fields of `chaos` in a stub file",
    "spark_replay/frames.py read_frames": "the options of the Spark source, and the two lists of events",
}
"""Functions with more parameters than that: what users write by keyword, each keyword with a default of its own."""
INNER_IMPORTS_MAX = 141
"""Imports inside functions of the packages, each for a measured start or an optional package; the number only falls."""
ANY_MAX = 351
"""Uses of `Any` in the packages; the number only falls."""
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
RUN_ELSEWHERE = re.compile(r"^pytestmark = .*pytest\.mark\.real_kafka\b", re.MULTILINE)
SLEEPING = {"settle": "gives a socket the time to deliver what must not come"}
GENERATED = re.compile(r"generated.*do not edit", re.IGNORECASE | re.DOTALL)


def tracked() -> list[Path]:
    """Every file that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


FILES = tracked()
PYTHON = [path for path in FILES if path.suffix == ".py"]
BY_HAND = [path for path in PYTHON if not GENERATED.search(path.read_text()[:600])]


PACKAGES = {
    folder.partition("/")[0]
    for folder in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"].values()
}
SHIPPED = [path for path in BY_HAND if path.relative_to(ROOT).parts[0] in PACKAGES]


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@cache
def nodes(path: Path) -> list[ast.AST]:
    gc.disable()  # it would go through the nodes of all files again and again
    try:
        return list(ast.walk(ast.parse(path.read_text())))
    finally:
        gc.freeze()
        gc.enable()


@cache
def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def asserts(function: ast.AST) -> bool:
    """Return True if the function can fail on purpose: an assert, a `raises`, or a call with a checking name."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if re.search(r"raises|verify|assert|expect|check|fnmatch_lines", called):
                return True
    return False


def test_there_is_something_to_keep_tidy() -> None:
    assert len(BY_HAND) > 20
    assert {path.relative_to(ROOT).parts[0] for path in BY_HAND} >= {"wire", "server", "codegen", "tests"}


def test_functions_stay_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in BY_HAND
        for function in functions(path)
        if function.end_lineno is not None and function.end_lineno - function.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert long == []


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = function.args
    found = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return found[1:] if found[:1] in (["self"], ["cls"]) else found


def test_functions_have_few_parameters() -> None:
    long = [
        f"{path.relative_to(ROOT)} {function.name}"
        for path in SHIPPED
        for function in functions(path)
        if len(parameters(function)) > PARAMETERS_MAX
    ]
    assert set(long) == WRITTEN_BY_USERS.keys()


def test_no_more_imports_are_inside_functions() -> None:
    inside = {
        (path, node.lineno)
        for path in SHIPPED
        for function in functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert len(inside) <= INNER_IMPORTS_MAX


def test_no_more_types_are_any() -> None:
    found = [node for path in SHIPPED for node in nodes(path) if isinstance(node, ast.Name) and node.id == "Any"]
    assert len(found) <= ANY_MAX


def test_no_file_has_a_meaningless_name() -> None:
    assert [name for name in names(PYTHON) if BANNED_NAMES & set(Path(name).with_suffix("").parts)] == []


def bare_sleeps(path: Path) -> Iterator[str]:
    """Sleeps outside a loop that polls a condition, by their function and line; `sleep(0)` only yields."""
    for function in functions(path):
        polling = {
            id(node)
            for loop in ast.walk(function)
            if isinstance(loop, ast.While | ast.For)
            and (
                isinstance(loop, ast.While) or any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop))
            )
            for node in ast.walk(loop)
        }
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or id(node) in polling or not node.args:
                continue
            is_zero = isinstance(node.args[0], ast.Constant) and not node.args[0].value
            if ast.unparse(node.func) in {"asyncio.sleep", "time.sleep", "sleep"} and not is_zero:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {function.name}"


def test_tests_wait_for_conditions_instead_of_sleeping() -> None:
    found = [each for path in BY_HAND if path.is_relative_to(ROOT / "tests") for each in bare_sleeps(path)]
    assert [each for each in found if each.rpartition(" ")[2] not in SLEEPING] == []


def test_every_test_can_fail() -> None:
    hollow = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in BY_HAND
        if path.name.startswith("test_")
        for function in functions(path)
        if function.name.startswith("test_") and not asserts(function)
    ]
    assert hollow == []


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    marks = re.compile(r"pytest\.(mark\.(skip|skipif|xfail)|skip\(|xfail\(|importorskip)")
    offenders = [path for path in BY_HAND if path != Path(__file__) and marks.search(path.read_text())]
    assert names(offenders) == []


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a note to self", r"\b(TODO|FIXME|XXX|HACK)\b"),
        ("a stub", r"raise NotImplementedError"),
        ("a path of one machine", r"(?<![\w.])/(work|home|root|Users)/"),
        ("a wall-clock assert", r"assert .*\b(perf_counter|monotonic)\(\)"),
    ],
)
def test_source_holds_none_of(what: str, pattern: str) -> None:
    offenders = [path for path in BY_HAND if path != Path(__file__) and re.search(pattern, path.read_text())]
    assert names(offenders) == [], what


def test_text_names_no_machine_path_and_no_package_registry() -> None:
    machine = r"(?<![\w.])/(work|home|root)/"
    registry = r"repo1?\.maven\.org|pypi\.org/simple|files\.pythonhosted|registry\.npmjs"
    suffixes = {".md", ".toml", ".ini", ".txt", ".yml", ".java", ".xml"}
    texts = [path for path in FILES if path.suffix in suffixes or path.name in {"Makefile", "run"}]
    assert names([path for path in texts if re.search(f"{machine}|{registry}", path.read_text())]) == []


def test_a_folder_that_units_do_not_collect_has_no_test_that_would_run_nowhere() -> None:
    ignored = [path for path in PYTHON if "real_kafka" in path.parent.parts and path.name.startswith("test_")]
    assert len(ignored) > 50
    assert names([path for path in ignored if not RUN_ELSEWHERE.search(path.read_text())]) == []


def test_every_path_that_environments_and_groups_name_exists() -> None:
    for name in ("tox.ini", "tests/scheduling.py", "Makefile"):
        found = set(re.findall(r"\btests/[\w/]+(?:\.py)?", (ROOT / name).read_text()))
        assert len(found) > 2
        assert [path for path in sorted(found) if not (ROOT / path).exists()] == [], name


def test_heavy_tests_of_every_run_exist() -> None:
    for beginning in IN_EVERY_RUN:
        path, _, name = beginning.partition("::")
        is_written = path.startswith("tests/documentation/pages/")
        assert is_written or (ROOT / path).exists(), path
        assert not name or name.partition("[")[0] in names_in(path), beginning


def test_every_package_is_listed_for_the_wheel() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {path.parent for path in PYTHON if path.name == "__init__.py"}
    rooms = {
        folder.relative_to(ROOT)
        for folder in folders
        if folder.relative_to(ROOT).parts[0] not in {"tests", "tools", "benchmarks", "speed"}
    }
    needed = {".".join(("mockraft", *room.parts)).replace("mockraft.front", "mockraft") for room in rooms}
    assert needed - listed == set()


def test_every_decision_is_reachable_from_the_docs() -> None:
    folder = ROOT / "docs" / "explanation" / "decisions"
    decisions = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    index = (folder / "README.md").read_text()
    assert [name for name in decisions if f"({name})" not in index] == []


def test_links_between_documents_lead_somewhere() -> None:
    dead = []
    for path in FILES:
        if path.suffix != ".md":
            continue
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", path.read_text()):
            if not (path.parent / target).exists():
                dead.append(f"{path.relative_to(ROOT)} → {target}")
    assert dead == []


def test_vendored_specs_are_byte_for_byte_json_of_their_release() -> None:
    specs = list((ROOT / "schemas_json" / NEWEST).glob("*/*.json"))
    assert len(specs) == 231
    for path in specs:
        text = "\n".join(line for line in path.read_text().splitlines() if not line.strip().startswith("//"))
        assert {"name", "type", "validVersions"} <= json.loads(text).keys()


def test_randomness_is_an_argument_wherever_the_same_inputs_give_the_same_bytes() -> None:
    pure = ("wire", "kafka_api", "server/apis", "server/controller", "server/raft", "brokers/apis")
    drawing = []
    for path in BY_HAND:
        if str(path.relative_to(ROOT)).startswith(pure):
            tree = ast.parse(path.read_text())
            drawing += [
                path
                for node in tree.body
                if isinstance(node, ast.Import | ast.ImportFrom) and "random" in ast.unparse(node).split()
            ]
    assert names(drawing) == []


def test_images_are_built_with_every_package() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"].values()
    copied = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines()}
    assert {folder.partition("/")[0] for folder in packages} - copied == set()
