"""Each page's console blocks run as its reader pastes them, in order, and print what the page shows."""

from __future__ import annotations

import fcntl
import shlex
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.child_process import wait_until
from mockraft.kafka.tools import TOOL_CLASSES, java_command

from ..languages.tools import copied
from .blocks import PAGES, ROOT
from .console import Block, blocks_of
from .terminal import Terminal

pytestmark = pytest.mark.one_python

NOT_RUN = {
    "a target of the clone's Makefile": 3,
    "a candidate's distribution is not at hand": 1,
    "a tool of the clone": 1,
    "installs from a package index": 13,
    "needs a Docker engine": 2,
    "needs a Spark cluster": 1,
    "needs a broker with a SASL listener": 1,
    "needs a full disk": 1,
    "takes minutes, in the clone": 3,
}
"""Reasons for which blocks do not run, and how many blocks there are with each."""

PORTS = (8080, 9000, 9092, 9093, 9094, 9095, 9096, 9192, 9193, 9194, 9292, 19093)

BLOCKS = {
    page: blocks_of(page)
    for page in (*PAGES, *sorted((ROOT / "clients").glob("*/README.md")))
    if page.name != "CONTRIBUTING.md"  # commands that change the clone
}


def _mark(text: str) -> Any:
    name, _, argument = text.rstrip(")").partition("(")
    return getattr(pytest.mark, name)(int(argument)) if argument else getattr(pytest.mark, name)


def _runs() -> list[Any]:
    """Each page, once for every set of marks in it: blocks without marks that come before run there, too."""
    runs = []
    for page, blocks in BLOCKS.items():
        name = page.relative_to(ROOT).with_suffix("").as_posix()
        for marks in sorted({block.marks for block in blocks if block.not_run is None and block.commands}, key=sorted):
            ids, set_marks = "-".join([name, *sorted(marks)]), [_mark(mark) for mark in sorted(marks)]
            runs.append(pytest.param(page, marks, id=ids, marks=set_marks))
    return runs


@pytest.fixture
def only_page() -> Iterator[None]:
    """Pages name the ports that readers use: one page at a time runs on a machine, once nothing else has them."""
    with (Path(tempfile.gettempdir()) / "mockraft-console-blocks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wait_until(lambda: all(map(_is_free, PORTS)), 300, f"another process listens on one of {PORTS}")
        yield


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("only_page")
@pytest.mark.parametrize(("page", "marks"), _runs())
def test_commands_print_what_the_page_shows(page: Path, marks: frozenset[str], tmp_path: Path) -> None:
    (tmp_path / "examples").unlink()
    copied(tmp_path, "examples", "clients")
    terminal = Terminal(tmp_path, _kafka_scripts(tmp_path) if "real_kafka" in marks else None)
    try:
        last = max(number for number, block in enumerate(BLOCKS[page]) if block.marks == marks)
        for block in BLOCKS[page][: last + 1]:
            if block.marks <= marks:
                _run(terminal, block)
    finally:
        failed_servers = terminal.close()
    assert failed_servers == []


def _run(terminal: Terminal, block: Block) -> None:
    if block.file is not None:
        name, text = block.file
        (terminal.folder / name).parent.mkdir(exist_ok=True)
        (terminal.folder / name).write_text(text)
    for command in block.commands if block.not_run is None else []:
        terminal.run(command)


def _kafka_scripts(folder: Path) -> Path:
    """Write the scripts of a Kafka distribution's bin folder that pages use, with and without .sh."""
    scripts = folder / ".kafka"
    scripts.mkdir()
    classes = {**TOOL_CLASSES, "kafka-server-start": "kafka.Kafka"}
    for name, main_class in classes.items():
        version = "4.3.1" if name == "kafka-metadata-shell" else "4.4.0"
        level = "info" if name == "kafka-server-start" else "error"
        options = ["-Xmx512m", f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level}"]
        for path in (scripts / name, scripts / f"{name}.sh"):
            path.write_text(f'#!/bin/sh\nexec {shlex.join(java_command(version, options, main_class))} "$@"\n')
            path.chmod(0o755)
    return scripts


def test_blocks_that_do_not_run_are_few_and_have_a_reason() -> None:
    reasons = [block.not_run for blocks in BLOCKS.values() for block in blocks if block.not_run is not None]
    assert Counter(reasons) == NOT_RUN
