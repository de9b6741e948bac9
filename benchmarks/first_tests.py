"""The first test with the Go and the Java library, timed from the start of its process and of its mockraft."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from load import BUILT
from result import ROOT

JAVA_TEST = Path(__file__).parent / "first_test" / "FirstTest.java"
GO_TEST = "TestAStubServesOneClientOnce"


class Run(NamedTuple):
    """Milliseconds of one process with one test."""

    whole: float
    of_mockraft: float
    """Without what comes before the start of mockraft: a JVM, and JUnit."""


class FirstTests:
    """Processes with one test: a controller with a broker, a stub, a refused request and a verification."""

    def __init__(self) -> None:
        self._commands = {"Go": (_built_go(), "--- PASS"), "Java": (_built_java(), "SUCCESSFUL")}

    def run(self) -> dict[str, Run]:
        """Run the test in each language."""
        return {language: _timed(*command) for language, command in self._commands.items()}


def _timed(command: list[str], passed: str) -> Run:
    environment = os.environ | {"MOCKRAFT": str(Path(sys.executable).with_name("mockraft"))}
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if passed in line:
                whole_ms = (time.perf_counter() - began) * 1000
                break
        else:
            raise RuntimeError(f"{command[0]} failed:\n{process.stderr.read()}")
        test = psutil.Process(process.pid)
        (mockraft,) = test.children()
        before_ms = (mockraft.create_time() - test.create_time()) * 1000
        process.communicate()
    return Run(whole_ms, whole_ms - before_ms)


def _built_go() -> list[str]:
    program = BUILT / "first_test.go"
    subprocess.run(["go", "test", "-c", "-o", str(program), "."], cwd=ROOT / "clients" / "go", check=True)
    return [str(program), "-test.v", "-test.run", f"^{GO_TEST}$"]


def _built_java() -> list[str]:
    folder = BUILT / "first_test"  # a copy, for Maven writes beside the sources
    shutil.copytree(ROOT / "clients", folder / "clients", dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples" / "junit", folder / "examples" / "junit", dirs_exist_ok=True)
    listed = folder / "classpath"
    goals = ("test-compile", "dependency:build-classpath", f"-Dmdep.outputFile={listed}")
    maven = ("mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "--projects", "junit", *goals)
    subprocess.run(maven, cwd=folder / "clients" / "java", check=True, stdout=subprocess.DEVNULL)
    own, compiled = folder / "clients" / "java" / "junit" / "target" / "classes", folder / "classes"
    path = f"{listed.read_text()}:{own}"
    subprocess.run(["javac", "-d", str(compiled), "-cp", path, str(JAVA_TEST)], check=True)
    return ["java", "-cp", f"{path}:{compiled}", JAVA_TEST.stem]
