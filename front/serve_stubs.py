"""The option of `mockraft serve` that names a file of stubs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mockraft.server.stubs.stub_file import StubFile

Stubs = Annotated[
    Path | None, typer.Option(help="File of stubs, faults and a plan that begin at once, as JSON or YAML.")
]


def stub_file(path: Path | None) -> StubFile | None:
    """What the file says. BadParameter says where it is wrong."""
    from mockraft.server.stubs.stub_file import StubFileError, read_stub_file

    try:
        return None if path is None else read_stub_file(path)
    except StubFileError as error:
        raise typer.BadParameter(str(error), param_hint="--stubs") from error
