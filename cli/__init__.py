"""The command `mockraft` and its commands, one file or folder each.

commands.py lists them, and imports a module when one of its commands is used. The module has its commands in
`COMMANDS`, as command_line.py describes; controllers and brokers are imported inside the command, so that its help
and completion come at once. Exit code 2 is a bad option, raised as OptionError; other codes are listed in the
command's help.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import warnings
from collections.abc import Sequence

from mockraft.cli import standard_streams
from mockraft.cli.commands import MOCKRAFT
from mockraft.cli.exit_codes import ExitCode

_WRITE_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; it ends with SystemExit if the exit code is not 0.

    If its output cannot be written, the exit code is 2, or 1 silently for a closed pipe.
    """
    standard_streams.prepare()
    try:
        try:
            _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            print(f"mockraft: {error.filename}: {error.strerror}", file=sys.stderr)
            sys.exit(ExitCode.USAGE)
        if error.errno not in _WRITE_ERRORS:
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # the interpreter's own flush must not fail again
        if error.errno == errno.EPIPE:
            sys.exit(1)  # as Rich does
        try:
            print(f"mockraft: cannot write the output: {error.strerror}", file=sys.stderr)
        except OSError:
            os.dup2(nowhere, 2)
        sys.exit(ExitCode.USAGE)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def _run(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["serve"]:
        gc.disable()  # nothing is garbage while it starts; serve enables it again
    if arguments and arguments[0] not in ("--help", "-h"):
        _check_codec()
    MOCKRAFT.call("mockraft", arguments, {})


def _check_codec() -> None:
    """End with one line if `MOCKRAFT_CODEC` asks for what cannot be had; print a warning in one line, too."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            import mockraft.wire.codec_path  # noqa: F401 - importing it chooses the path
        for warning in caught:
            print(f"mockraft: {warning.message}", file=sys.stderr)
    except (ImportError, ValueError) as error:
        print(f"mockraft: {error}", file=sys.stderr)
        sys.exit(ExitCode.USAGE if isinstance(error, ValueError) else ExitCode.MISSING)
