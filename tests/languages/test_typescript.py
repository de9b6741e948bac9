"""Types for TypeScript are generated from the OpenAPI document, which passes Redocly's rules; a program uses them."""

from pathlib import Path

import pytest
from mockraft import Controller

from .tools import copied, run

pytestmark = [pytest.mark.languages, pytest.mark.timeout(900)]


def test_a_typescript_program_uses_the_generated_types(tmp_path: Path) -> None:
    folder = copied(tmp_path, "clients", "examples/typescript") / "examples" / "typescript"
    run(folder, "npm", "ci", package="npm")
    with Controller.sync(brokers=1, admin_port=0) as controller:
        output = run(folder, "npm", "test", package="npm", MOCKRAFT_ADMIN=controller.admin_url)
    assert "# pass 3" in output
