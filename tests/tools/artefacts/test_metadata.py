"""Metadata and contents of the packages, and the pages that describe them."""

from __future__ import annotations

import email
import json
import re
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from tools.artefacts.version import PLACES, named_in, version

from ...budgets import soak
from .conftest import ROOT, build_here
from .test_installed import PROGRAMS

pytestmark = pytest.mark.artefacts

ADDRESS = "https://github.com/mockraft/mockraft"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def members(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


@pytest.mark.parametrize("package", ["mockraft", "pytest_mockraft"])
def test_package_index_shows_licence_description_and_addresses(package: str, packages: Path) -> None:
    (wheel,) = packages.glob(f"{package}-*.whl")
    fields = metadata(wheel)
    assert fields["Version"] == version()
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields.get_all("License-File", [])[0] == "LICENSE"
    assert fields["Description-Content-Type"] == "text/markdown"
    assert re.findall(r"\]\((?!https://)[^)]+\)", str(fields.get_payload())) == [], "a package index has no other files"
    addresses = dict(line.split(", ") for line in fields.get_all("Project-URL", []))
    assert addresses.keys() == {"Homepage", "Documentation", "Changelog", "Issues", "Source"}
    assert all(address.startswith(ADDRESS) for address in addresses.values())
    assert f"source_url: {ADDRESS}/" in (ROOT / "mkdocs.yml").read_text()


def test_addresses_of_files_lead_to_files() -> None:
    linked = [address for address in PYPROJECT["project"]["urls"].values() if "/blob/main/" in address]
    assert len(linked) == 2
    assert all((ROOT / address.partition("/blob/main/")[2]).is_file() for address in linked)


def test_sdist_has_what_a_build_needs_and_no_tests(packages: Path) -> None:
    (sdist,) = packages.glob("mockraft-*.tar.gz")
    folders = {name.partition("/")[0] for name in members(sdist)}
    assert folders == {
        *PYPROJECT["tool"]["setuptools"]["package-dir"].values(),
        "mockraft.egg-info",
        *("CHANGELOG.md", "LICENSE", "MANIFEST.in", "NOTICE", "PKG-INFO", "README.md", "SECURITY.md"),
        *("pyproject.toml", "setup.cfg"),
    }


def test_wheel_has_each_file_of_its_packages(packages: Path) -> None:
    (wheel,) = packages.glob("mockraft-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = PYPROJECT["tool"]["setuptools"]["package-dir"]
    expected = {
        path.relative_to(ROOT).as_posix().replace(folder, name.replace(".", "/"), 1)
        for name, folder in sources.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == expected


def test_pytest_mockraft_has_no_module_and_needs_its_own_minor_version(packages: Path) -> None:
    (wheel,) = packages.glob("pytest_mockraft-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if ".dist-info/" not in name] == []
    assert f"mockraft~={version()}" in metadata(wheel).get_all("Requires-Dist", [])


def test_pages_list_each_extra_with_its_packages() -> None:
    extras = {
        name: sorted(re.split(r"[^\w-]", requirement)[0] for requirement in requirements)
        for name, requirements in PYPROJECT["project"]["optional-dependencies"].items()
    }
    for name in ("mcp", "report", "spark"):
        extras[name].remove("mockraft")
    page, readme = (ROOT / "docs/reference/installation.md").read_text(), (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page, re.MULTILINE)
    assert {name: sorted(packages.split(", ")) for name, packages in rows} == extras
    assert re.findall(r"^\| `(\w+)` \| [^|]* \|$", readme, re.MULTILINE) == list(extras)
    assert PROGRAMS.keys() == extras.keys()


@pytest.mark.parametrize(("name", "expression"), PLACES)
def test_file_names_the_version(name: str, expression: str) -> None:
    assert named_in((ROOT / name).read_text(), expression)[1] == version(), "run make version"


def test_changelog_and_security_policy_have_the_version() -> None:
    newest = re.search(r"^## (\d\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version()
    assert f"| {version().rpartition('.')[0]}.x | yes |" in (ROOT / "SECURITY.md").read_text()


@soak
@pytest.mark.timeout(900)
def test_sbom_has_the_pinned_version_of_each_requirement(tmp_path: Path) -> None:
    build_here(tmp_path / "dist", "sbom")
    bom = json.loads((tmp_path / f"dist/mockraft-{version()}.cdx.json").read_text())
    found = {component["name"].lower().replace("_", "-"): component["version"] for component in bom["components"]}
    pinned = {
        name.lower().replace("_", "-"): pin
        for name, _, pin in (line.partition("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    }
    project = PYPROJECT["project"]
    required = {
        re.split(r"[^\w-]", requirement)[0].lower()
        for each in (project["dependencies"], *project["optional-dependencies"].values())
        for requirement in each
    }
    assert required - {"mockraft"} - found.keys() == set()
    assert {name: at for name, at in found.items() if pinned.get(name) != at} == {}
    assert bom["metadata"]["component"]["name"] == "mockraft"
    assert all(component.get("licenses") for component in bom["components"])
