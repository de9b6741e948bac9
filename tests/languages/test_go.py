"""The Go client is what its generator makes of the OpenAPI document, and its tests and the example pass."""

from pathlib import Path

import pytest

from ..budgets import SOAKS
from .tools import ROOT, copied, run

pytestmark = [pytest.mark.languages, pytest.mark.timeout(900)]

GENERATED = "clients/go/api/api.gen.go"


def test_the_generated_go_client_is_current(tmp_path: Path) -> None:
    folder = copied(tmp_path, "clients")
    (folder / GENERATED).unlink()
    run(folder / "clients" / "go", "go", "generate", "./...", package="golang-go")
    assert (folder / GENERATED).read_text() == (ROOT / GENERATED).read_text(), "run `make clients`"


@pytest.mark.parametrize(("module", "tests"), [("clients/go", 13), ("examples/go", 1)])
def test_the_tests_of_a_go_module_pass(module: str, tests: int) -> None:
    assert run(ROOT / module, "gofmt", "-l", ".", package="golang-go") == ""
    if SOAKS:  # go test has the main rules of go vet
        run(ROOT / module, "go", "vet", "./...", package="golang-go")
    output = run(ROOT / module, "go", "test", "-count=1", "-v", "./...", package="golang-go")
    assert output.count("--- PASS") == tests
