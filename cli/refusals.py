"""Refusals of commands, options that several commands read in the same way, and files that they write."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mockraft.cli.exit_codes import ExitCode
from mockraft.files.private_files import write_private
from mockraft.kafka_api.options import blaming, option
from mockraft.kafka_configs.client_properties import read_properties
from mockraft.spark_replay.recording import Filter
from mockraft.testing.proposals import NAMES, overlay_of
from mockraft.wire.connection import endpoint_of

if TYPE_CHECKING:
    from mockraft.wire.client_security import ClientSecurity
    from mockraft.wire.overlay import Overlay


def end(command: str, error: object, code: ExitCode) -> NoReturn:
    """End `mockraft COMMAND` with this exit code and the error on stderr."""
    print(f"mockraft {command}: {error}", file=sys.stderr)
    raise SystemExit(code)


def end_without(command: str, package: str | None, extra: str) -> NoReturn:
    """End `mockraft COMMAND` because a package is missing, which an extra of mockraft installs."""
    end(command, f"this needs {package}, which is not installed: pip install 'mockraft[{extra}]'", ExitCode.MISSING)


def write_json(command: str, path: Path | None, tree: object) -> None:
    """Write JSON to a file, if there is one, or to stdout for -; a file that cannot be written is exit code 2."""
    if path is None:
        return
    text = json.dumps(tree, indent=1, ensure_ascii=False)
    if path == Path("-"):
        print(text)
        return
    write_file(command, path, f"{text}\n".encode(errors="backslashreplace"))


def write_file(command: str, path: Path, content: bytes) -> None:
    """Write a private file; one that cannot be written is exit code 2."""
    try:
        write_private(path, content)
    except OSError as error:
        end(command, f"cannot write {path}: {error.strerror}", ExitCode.USAGE)


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """Parse host:port; OptionError for anything else."""
    with blaming(option):
        return endpoint_of(text)


def hosts_and_ports(text: str, option: str) -> tuple[tuple[str, int], ...]:
    """Parse several of them, separated by commas."""
    return tuple(host_and_port(part, option) for part in text.split(","))


def client_security(path: Path | None) -> ClientSecurity | None:
    """Read the file of --command-config; OptionError when it cannot be used."""
    with blaming("--command-config", OSError, ValueError):
        return None if path is None else read_properties(path)


def api_filter(filters: Sequence[str] | None) -> Filter:
    """Parse --filter; OptionError names an unknown API."""
    with blaming("--filter"):
        return Filter.parse(filters or ())


_PROFILE = f"Implement this proposal as its text words it: {', '.join(NAMES)}."


@dataclass(frozen=True, kw_only=True)
class ProposalOptions:
    """Options of commands that speak the messages of proposals."""

    profile: list[str] | None = option(None, metavar="KIP", help=_PROFILE, choices=NAMES, group="Proposals")
    schemas: list[Path] | None = option(
        None, metavar="DIR", help="Add the messages whose Kafka-style JSON specs are in DIR.", group="Proposals"
    )

    def overlay(self) -> Overlay | None:
        """Return the messages that the options name; a bad option ends the command with exit code 2."""
        with blaming("'--profile' / '--schemas'"):
            return overlay_of(self.profile or (), self.schemas or ())
