"""Files that `mockraft serve` begins with: a stub file and a saved state."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.cli.serve.options import MissingPackageError
from mockraft.kafka_api.options import OptionError, blaming

if TYPE_CHECKING:
    from mockraft.server.stubs.script import Script
    from mockraft.server.stubs.stub_file import StubFile

_log = logging.getLogger("mockraft.serve")


def cluster_id_in(initial_state: Path | None) -> str | None:
    """Return the cluster id in a saved state, None where it has none. OptionError for a file that is no state."""
    if initial_state is None:
        return None
    from mockraft.server.controller.log.state_file import read_state

    try:
        with blaming("--initial-state"):
            return read_state(initial_state).cluster_id or None
    except OSError as error:
        raise OptionError(f"{initial_state}: {error.strerror}", "--initial-state") from error


def stub_file(path: Path | None) -> StubFile | None:
    """Read a stub file. OptionError names the place of a mistake; MissingPackageError without PyYAML."""
    if path is None:
        return None
    from mockraft.files.trees import GivenFileError, NoYamlError
    from mockraft.server.stubs.stub_file import read_stub_file

    with blaming("--stubs", GivenFileError):
        try:
            return read_stub_file(path)
        except NoYamlError as error:
            raise MissingPackageError(str(error)) from None


def load(script: Script, file: StubFile, path: Path) -> None:
    """Add the stubs, faults and plan of a file. OptionError for one that cannot be added."""
    try:
        script.load(file)
    except ValueError as error:
        raise OptionError(f"{path}: {error}", "--stubs") from error
    plan = ", a plan" if file.plan else ""
    _log.info("%s: %d stubs, %d faults%s", path, len(file.stubs), len(file.faults), plan)


def log_unused(script: Script) -> None:
    """Log the stubs that never served: a test that relies on them tested nothing."""
    for each in script.stubs.unused():
        _log.warning("stub %s%s never served", each.id, f" ({each.name})" if each.name else "")
