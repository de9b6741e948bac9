"""Codecs in Go and Rust, built from small programs with pinned versions: kmsg/ and kafka_protocol/."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from codec_peers.bodies import Body
from load import BUILT
from mockraft.wire import messages
from mockraft.wire.message import Message

SOURCES = Path(__file__).parents[1]
KMSG, RUST = "kmsg (Go)", "kafka-protocol-rs"


def built_go(name: str) -> str:
    """Build the Go program in the folder `name`; return its path. FileNotFoundError without Go."""
    program = BUILT / name
    BUILT.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-mod=readonly", "-o", str(program), "."]
    subprocess.run(command, cwd=SOURCES / name, check=True, capture_output=True)
    return str(program)


def built_rust(name: str) -> str:
    """Build the Rust program in the folder `name`; return its path. FileNotFoundError without cargo."""
    source = BUILT / f"{name}-source"  # a copy: cargo writes a lock file beside the manifest
    shutil.copytree(SOURCES / name, source, dirs_exist_ok=True)
    target = BUILT / f"{name}-target"
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return str(target / "release" / "codec")


PROGRAMS = {KMSG: (built_go, "kmsg"), RUST: (built_rust, "kafka_protocol")}


def timings(bodies: list[Body]) -> tuple[dict[str, dict[str, dict[str, float]]], list[str]]:
    """Return library → message → direction → nanoseconds, and a line for each library that is missing."""

    def line(message: Message, version: int) -> str:
        return f"{type(message).__name__} {message.api_key} {version} {message.write(version).hex()}\n"

    are_messages = [body for body in bodies if type(body.message).__module__.startswith(messages.__name__)]
    lines = [line(body.message, body.version) for body in are_messages]
    found, missing = {}, []
    for name, (build, folder) in PROGRAMS.items():
        try:
            done = subprocess.run([build(folder)], input="".join(lines), capture_output=True, text=True, check=True)
            found[name] = json.loads(done.stdout)
        except FileNotFoundError as error:
            missing.append(f"{name} was not measured: {error.filename} is not installed.")
        except subprocess.CalledProcessError as error:
            missing.append(f"{name} was not measured: {(str(error.stderr).strip().splitlines() or [str(error)])[-1]}")
    return found, missing
