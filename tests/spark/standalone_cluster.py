"""Spark's own standalone cluster on loopback: a master and workers as processes, and submitted jobs."""

import os
import py_compile
import re
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from mockraft.kafka.jars import java

from .class_archive import OPTIONS

ROOT = Path(__file__).parents[2]
DEADLINE_S = 600
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MASTER_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_DAEMON_JAVA = (*QUICK_JAVA.split(), "-Xmx160m", "-Dspark.master.rest.enabled=false", "-Dspark.ui.enabled=false")


def write_archive(path: Path) -> Path:
    """The files of the wheel as a zip, packages and their data as pyproject.toml lists them.

    Modules are in it compiled as well, so that not every Python process of the cluster does that.
    """
    compiled = path.with_suffix(".compiled")
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = listed["package-dir"]
    with zipfile.ZipFile(path, "w") as archive:
        for package in listed["packages"]:
            room = max((each for each in folders if f"{package}.".startswith(f"{each}.")), key=len)
            folder = ROOT / folders[room] / package.removeprefix(room).strip(".").replace(".", "/")
            for pattern in ("*.py", *listed["package-data"].get(package, ())):
                for file in folder.glob(pattern):
                    name = f"{package.replace('.', '/')}/{file.relative_to(folder)}"
                    archive.write(file, name)
                    if pattern == "*.py":
                        py_compile.compile(str(file), str(compiled), name, doraise=True)
                        archive.write(compiled, f"{name}c")
    compiled.unlink()
    return path


def wait_for(what: str, condition: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until `condition` holds. Raises AssertionError on timeout or if its process ends first."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if process is not None and process.poll() is not None:
            raise AssertionError(f"{what}: the process ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not after {DEADLINE_S} s")
        time.sleep(0.02)


def descendants(pid: int) -> list[psutil.Process]:
    """Return the processes below one. psutil's own `children` compares times of a clock that is set."""
    running, pids, found = list(psutil.process_iter(["ppid"])), {pid}, list[psutil.Process]()
    while below := [each for each in running if each.info["ppid"] in pids and each.pid not in pids]:
        found += below
        pids |= {each.pid for each in below}
    return found


class StandaloneCluster:
    """A master and its workers, each with one core; everything they write is in `folder`."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        (core,) = (self._home / "jars").glob("spark-core_*.jar")
        kept = {name: value for name, value in os.environ.items() if name == OPTIONS or not name.startswith("SPARK_")}
        self._environment = kept | {
            "SPARK_HOME": str(self._home),
            "SPARK_SCALA_VERSION": core.name.split("_")[1].split("-")[0],
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_LAUNCHER_OPTS": QUICK_JAVA,
            "PYSPARK_PYTHON": sys.executable,
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        self.master = ""
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int) -> None:
        """Start the master, then the workers, which come up while a job is submitted."""
        ports = ("--port", "0", "--webui-port", "0")
        master = self._spawn("master", *self._daemon("master.Master"), "--host", "127.0.0.1", *ports)
        wait_for("the master is ready", lambda: MASTER_READY.search(self.log("master")), master)
        self.master = MASTER_READY.findall(self.log("master"))[0]
        for number in range(workers):
            room = self._folder / f"work-{number}"
            # A host of its own: Spark runs no second attempt of a task on the host of the first.
            address = ("--host", f"127.0.0.{number + 2}", *ports)
            words = ("--cores", "1", "--memory", "700m", "--work-dir", str(room), self.master)
            self.workers.append(self._spawn(f"worker-{number}", *self._daemon("worker.Worker"), *address, *words))

    def run_driver(self, job: Path, arguments: Sequence[str]) -> int:
        """Run a Python file as a driver in a process group of its own, and return how it ended."""
        words = [sys.executable, str(job), *arguments]
        return subprocess.run(
            words, env=self._environment, start_new_session=True, check=False, capture_output=True
        ).returncode

    def submit(
        self, job: Path, arguments: Sequence[str], *, py_files: Path, settings: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """`spark-submit --py-files` a Python file."""
        conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        words = ("--master", self.master, "--py-files", str(py_files), *conf, str(job), *arguments)
        return self._spawn("job", str(self._home / "bin" / "spark-submit"), *words)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """SIGKILL a worker with its executors and their Python processes, all at once."""
        for process in (psutil.Process(worker.pid), *self.processes_of(worker)):
            with suppress(psutil.NoSuchProcess):  # its executor may end by itself
                process.send_signal(signal.SIGKILL)
        worker.wait()

    def processes_of(self, worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
        """Return the processes that a worker started: executors and their children."""
        return descendants(worker.pid)

    def log(self, name: str) -> str:
        """Return a process's output."""
        return (self._folder / f"{name}.log").read_text()

    def stop(self) -> None:
        """Stop everything that still runs."""
        for process in reversed(self.processes):
            if process.poll() is None:
                started = descendants(process.pid)
                process.kill()
                process.wait()
                for each in started:
                    with suppress(psutil.NoSuchProcess):
                        each.kill()

    def _daemon(self, name: str) -> list[str]:
        """Return the command of `spark-class` for a class, without starting its JVM."""
        jars = self._home / "jars"
        first = [str(jar) for jar in jars.glob("slf4j-api-*.jar")]
        classpath = os.pathsep.join([str(self._home / "conf"), *first, str(jars / "*")])
        return [java(), "-cp", classpath, *_DAEMON_JAVA, f"org.apache.spark.deploy.{name}"]

    def _spawn(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[StandaloneCluster]:
    """A cluster that runs, until the block ends."""
    cluster = StandaloneCluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
