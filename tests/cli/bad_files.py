"""Files and directories that a path on a command line may lead to, and commands in processes with limits."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mockraft.cli import main
from mockraft.cli.command_line import Command
from mockraft.cli.commands import LISTED, MOCKRAFT
from mockraft.kafka_api.options import REQUIRED, Option

TIMEOUT_S: Final = 120
STARTED: Final = -1
"""The exit code of a server that runs."""
MEMORY_MAX: Final = 4 << 30
KEYS: Final = 60_000
DIGITS: Final = 5_000
LEVELS: Final = 1_900
NOT_READ: Final = {
    "class_path",
    "fail_log_dir",
    "fill",
    "slow",
    "flaky",
    "heal",
    "corrupt",
    "cordoned_log_dir",
    "directory",
}
"""Options for Java, and names of a simulated broker's directories."""
WRITTEN: Final = {"out", "json_file", "junit_file", "html_file", "html", "summary_file", "save_test", "logs"}
"""Options that name what a command writes."""

_IS_PATH: Final = ("FILE", "DIR", "PATH", "RUN")


class PathOption(NamedTuple):
    """An option or argument that names what a command reads."""

    command: tuple[str, ...]
    option: Option
    options: tuple[Option, ...]

    def __str__(self) -> str:
        return " ".join((*self.command, self.option.flag))

    @property
    def is_for_folders(self) -> bool:
        """True if it takes directories, too."""
        words = f"{self.option.metavar} {self.option.help}".lower()
        return any(word in words for word in ("dir", "folder"))

    def arguments(self, path: Path, good: Mapping[str, str]) -> list[str]:
        """Return a command line with this path; `good` are values of other options, by flag."""
        given = [*self.command]
        for each in self.options:
            if each.flag == "--port" and each.kind is int and not each.is_list:
                given += ["--port", "0"]
            if each != self.option and each.default is REQUIRED:
                value = good.get(each.flag) or ("1" if each.kind in (int, float) else "127.0.0.1:1")
                given += [value] if each.is_argument else [each.flag, value]
        also = {"redact": "--out", "twin": "--from", "conformance": "--bootstrap"}.get(" ".join(self.command))
        if also is not None and self.option.flag not in (also, "--reveal"):
            given += [also, good.get(also, "127.0.0.1:1")]
        if "--ssl-" in self.option.flag:
            given += ["--security-protocol", "SSL"]
            given += [
                part for flag in ("--ssl-certificate-file", "--ssl-key-file") for part in (flag, good["--key-file"])
            ]
        if "token" in self.option.flag:
            given += ["--admin-port", "0"] if self.command[0] == "serve" else ["--admin", "http://127.0.0.1:1"]
        given += [str(path)] if self.option.is_argument else [self.option.flag, str(path)]
        return [*given, "--", "true"] if self.command == ("lab",) else given


def path_options(command: Command = MOCKRAFT, names: tuple[str, ...] = ()) -> Iterator[PathOption]:
    """Yield every option and argument of every command that names what is read."""
    if command.run is not None:
        for each in command.options:
            words = (each.metavar or "").upper()
            is_path = each.kind is Path or any(word in words for word in _IS_PATH)
            is_left_out = each.name in WRITTEN | NOT_READ or names[-1:] in (("save",), ("fail-log-dir",))
            if is_path and not is_left_out:
                yield PathOption(names, each, command.options)
    for name in command.subcommands:
        yield from path_options(command.subcommands[name], (*names, name))


def make_bad_files(folder: Path) -> dict[str, Path]:
    """Write the files by kind."""
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    with (folder / "giant").open("wb") as file:
        file.truncate(40 << 30)
    os.link(folder / "giant", folder / f"{0:020d}.log")
    os.link(folder / "giant", folder / f"{9:020d}-{1:010d}.checkpoint")
    keys = [f'"k{number}": {number}' for number in range(KEYS)]
    texts = {
        "deep.json": "[" * 100_000,
        "deep.yaml": "[" * 100_000,
        "deep.toml": f"a = {'[' * 100_000}",
        "deep900.json": '{"steps":' + "[" * 900 + "]" * 900 + "}",
        "keys.json": f"{{{', '.join(keys)}}}",
        "keys.yaml": "\n".join(f"k{number}: {number}" for number in range(KEYS)),
        "keys.toml": "\n".join(f"k{number} = {number}" for number in range(KEYS)),
        "double.json": f"{{{', '.join([*keys, keys[0]])}}}",
        "double.yaml": "steps: []\nsteps: []",
        "digits.json": f'{{"steps": [{{"wait": {"9" * DIGITS}}}]}}',
        "digits.yaml": f"steps: [{{wait: {'9' * DIGITS}}}]",
        "digits.toml": f"rule = {'9' * DIGITS}",
        "infinite.json": '{"steps": [{"wait": 1e999}]}',
        "infinite.yaml": "steps: [{wait: .inf}]",
        "python.yaml": "stubs: !!python/name:os.system",
        "apply.yaml": "stubs: !!python/object/apply:os.system ['true']",
        "time.yaml": "stubs: [{match: 2001-99-99}]",
        "surrogate.json": '{"stubs": [{"name": "\\ud800"}]}',
        "scalar.json": "1",
        "text": "nothing of sense\n" * 3,
        "digits.properties": f"node.id={'9' * DIGITS}\nbroker.id={'9' * DIGITS}\nlog.dirs=\n",
        "escape.properties": "a=\\u12",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "bytes").write_bytes(bytes(range(256)) * 9)
    (folder / "empty").write_bytes(b"")
    (folder / "latin.json").write_bytes(b'{"stubs": [], "\xe9": 1}')
    found = {path.name: path for path in sorted(folder.iterdir())}
    return {**found, "device": Path("/dev/zero"), "terminal": Path("/dev/tty"), "missing": folder / "missing"}


def make_bad_folders(folder: Path, good_data_dir: Callable[[Path], None]) -> dict[str, Path]:
    """Write directories by kind; `good_data_dir` writes the one that others damage."""
    folder.mkdir()
    names = ["meta.properties", "bootstrap.checkpoint", "hosts.json", "recovery-point-offset-checkpoint", "a.json"]
    names += ["a.pcap", "SOURCE.toml", "replay_results", "rules.json", ".kafka_cleanshutdown"]
    log = ["quorum-state", "leader-epoch-checkpoint", "partition.metadata"]
    log += [f"{0:020d}.log", f"{9:020d}-{1:010d}.checkpoint"]
    found: dict[str, Path] = {}

    def pipe(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    def loop(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(path)

    def giant(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(40 << 30)

    for kind in (pipe, loop, giant):
        for name in names:
            found[f"{kind.__name__} {name}"] = folder / f"{kind.__name__}-{name}"
            kind(found[f"{kind.__name__} {name}"] / name)
        for name in log:
            path = found[f"{kind.__name__} of a log: {name}"] = folder / f"{kind.__name__}-log-{name}"
            good_data_dir(path)
            kind(path / "__cluster_metadata-0" / name)
    for name, text in {
        "depth": "[" * 100_000,
        "digits": f'{{"leaderId": {"9" * DIGITS}, "votedId": 1, "leaderEpoch": 1}}',
    }.items():
        path = found[f"quorum-state: {name}"] = folder / f"quorum-{name}"
        good_data_dir(path)
        (path / "__cluster_metadata-0" / "quorum-state").write_text(text)
    path = found["many damaged snapshots"] = folder / "damaged"
    good_data_dir(path)
    for number in range(1, 3_000):
        (path / "__cluster_metadata-0" / f"{number:020d}-0000000001.checkpoint").write_bytes(b"damaged" * 9)
    found["deep"] = folder / "deep"
    os.mkdir(found["deep"])
    here = os.getcwd()
    try:
        os.chdir(found["deep"])
        for _ in range(LEVELS):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    found["below deep"] = Path(str(found["deep"]) + "/d" * LEVELS) / "e/e"
    found |= _spec_folders(folder)
    return found


def _spec_folders(folder: Path) -> dict[str, Path]:
    """Write folders of message specs that are none."""
    spec = {"apiKey": 7777, "type": "request", "name": "OddRequest", "validVersions": "0", "flexibleVersions": "0+"}
    field = {"name": "A", "type": "int32", "versions": "0+"}
    specs: dict[str, object] = {
        "no name": {**spec, "name": None},
        "names that are code": {**spec, "name": "a b", "fields": [field]},
        "field without a type": {**spec, "fields": [{"name": "A", "versions": "0+"}]},
        "empty type": {**spec, "fields": [{**field, "type": ""}]},
        "empty element": {**spec, "fields": [{**field, "type": "[]"}]},
        "array of arrays": {**spec, "fields": [{**field, "type": "[][]int32"}]},
        "empty field name": {**spec, "fields": [{**field, "name": ""}]},
        "field named by a keyword": {**spec, "fields": [{**field, "name": "Class"}]},
        "unknown struct": {**spec, "fields": [{**field, "type": "Nowhere"}]},
        "struct in itself": {
            **spec,
            "fields": [{**field, "type": "[]S"}],
            "commonStructs": [{"name": "S", "versions": "0+", "fields": [{**field, "type": "[]S"}]}],
        },
        "huge versions": {**spec, "validVersions": f"0-{'9' * DIGITS}", "fields": [field]},
        "many versions": {**spec, "validVersions": "0-2147483647", "fields": [field]},
        "huge tag": {**spec, "fields": [{**field, "tag": 10**30, "taggedVersions": "0+"}]},
        "huge key": {**spec, "apiKey": 10**30, "fields": [field]},
        "negative key": {**spec, "apiKey": -5, "fields": [field]},
        "type that is no text": {**spec, "type": 7, "fields": [field]},
        "default that is a list": {**spec, "fields": [{**field, "default": [1]}]},
        "float that is infinite": {**spec, "fields": [{**field, "type": "float64", "default": "1e999"}]},
        "fields that are no list": {**spec, "fields": 3},
        "a list": [spec],
        "response without request": {**spec, "type": "response", "name": "OddResponse", "fields": [field]},
        "two fields of a name": {**spec, "fields": [field, field]},
    }
    found = {}
    for name, tree in specs.items():
        path = found[f"spec: {name}"] = folder / f"spec-{name}"
        path.mkdir()
        (path / "OddRequest.json").write_text(json.dumps(tree))
    return found


class Ended(NamedTuple):
    """The end of a command: its exit code, None if it did not end in time, its errors, and its memory in MiB."""

    code: int | None
    stderr: str
    mebibytes: int


_CONTEXT = multiprocessing.get_context("forkserver")


def run_limited(arguments: Sequence[str], folder: Path) -> Ended:
    """Run a command in a process of its own, with limits of time and memory."""
    _CONTEXT.set_forkserver_preload([__name__, *(f"mockraft.cli.{each.module}" for each in LISTED.values())])
    errors, output, about = folder / "errors", folder / "output", folder / "about"
    for path in (errors, output, about):
        path.write_bytes(b"")
    process = _CONTEXT.Process(target=_run, args=(list(arguments), errors, output, about), daemon=True)
    process.start()
    deadline_s = time.monotonic() + TIMEOUT_S
    while process.is_alive() and time.monotonic() < deadline_s:
        process.join(0.05)
        if "ready" in output.read_text(errors="replace"):
            break  # a server that found nothing wrong
    code = STARTED if "ready" in output.read_text(errors="replace") else process.exitcode
    process.kill()
    process.join()
    return Ended(code, errors.read_text(errors="replace"), int(about.read_text() or 0))


def _run(arguments: list[str], errors: Path, output: Path, about: Path) -> None:
    os.dup2(os.open(output, os.O_WRONLY), 1)
    os.dup2(os.open(errors, os.O_WRONLY), 2)
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stdin = open(os.devnull)  # noqa: SIM115
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    code = 0
    try:
        main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    about.write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10))
    sys.stderr.flush()
    os._exit(code)
