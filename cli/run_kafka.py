"""`mockraft run-kafka`: real Kafka brokers on a mockraft controller, ready for any Kafka client."""

from __future__ import annotations

import re
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.cli.terminal import Terminal
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KafkaUnavailableError, jars_directory, java
from mockraft.kafka.processes import KafkaProcessError
from mockraft.kafka.tools import java_command
from mockraft.kafka_api.options import option
from mockraft.releases import SUPPORTED, release
from rich.text import Text

if TYPE_CHECKING:
    from mockraft.kafka.processes import KafkaBroker

_START_TIMEOUT_S = 90

# What a broker's log says on its way, the state it is in from then on, and what that means.
_WAY_TO_RUNNING = (
    (r"of broker \d+ in cluster \S+ is now STARTING", "STARTING", "looks for the controller"),
    (r"Successfully registered broker \d+ with broker epoch (\d+)", "STARTING", "registered, broker epoch {}"),
    (r"Transitioning from STARTING to RECOVERY", "RECOVERY", "caught up with the metadata log"),
    (r"Transitioning from RECOVERY to RUNNING", "RUNNING", "unfenced by the controller"),
    (r"\[BrokerServer id=\d+\] Transition from STARTING to STARTED", "RUNNING", "serves clients at {bootstrap}"),
)


ABOUT = """Run real Kafka brokers whose only controller is mockraft, and leave them to you until Ctrl-C.

Kafka's jars are fetched once by Maven; Java 17 or newer is needed. Nothing is left behind but those jars.

""" + exit_codes(ExitCode.MISSING, done="it was stopped", failed="a broker ended, or did not start")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft run-kafka`."""

    brokers: int = option(1, lowest=1, highest=9, help="How many brokers; each takes about 200 MB of memory.")
    kafka_version: str = option(
        release().kafka_version, help=f"The Kafka version of the brokers: {SUPPORTED[0]} to {SUPPORTED[-1]}."
    )
    log_dirs: int = option(2, lowest=1, highest=8, help="Log directories of each broker.")
    for_s: float | None = option(None, "--for", lowest=0, help="Stop after so many seconds instead of at Ctrl-C.")


def run_kafka(options: Options) -> None:
    """Run the brokers; see ABOUT."""
    console = Terminal(soft_wrap=True)
    story = _Story(console)
    try:
        with _signals_as_ctrl_c(), tempfile.TemporaryDirectory(prefix="mockraft-") as folder:
            _fetch_jars(story, options.kafka_version)
            cluster = _cluster(Path(folder), options.brokers, options.kafka_version, options.log_dirs)
            try:
                _start(story, cluster)
                _show_what_to_do(console, cluster)
                _stay(cluster, options.for_s)
            except KeyboardInterrupt:
                pass
            finally:
                story.report("all", "stopping", "", style="dim")
                _stop(cluster)
    except KeyboardInterrupt:
        pass
    except KafkaUnavailableError as error:
        end("run-kafka", error, ExitCode.MISSING)
    except KafkaProcessError as error:
        end("run-kafka", error, ExitCode.FAILED)


class _Story:
    """One line for each thing that happened, with the seconds since the start."""

    def __init__(self, console: Terminal) -> None:
        self.console = console
        self._began = time.monotonic()

    def report(self, who: str, state: str, what: str, *, style: str = "") -> None:
        seconds = time.monotonic() - self._began
        line = Text.assemble(
            (f"{seconds:6.1f} s", "dim"), f"  {who:<11}", (f"{state:<9}", style or "bold"), f"  {what}"
        )
        line.rstrip()
        self.console.print(line)


def _fetch_jars(story: _Story, version: str) -> None:
    java()
    arrived: list[str] = []
    with story.console.status("looking for Kafka's jars") as status:

        def progress(name: str) -> None:
            if not arrived:
                story.report("jars", "fetching", f"Kafka {version}, about 55 MB, with Maven (only this once)")
            arrived.append(name)
            status.update(f"{len(arrived)} jars, {name}")

        folder = jars_directory(version, progress)
        status.update("Kafka's classes are archived, so that its processes start sooner (only this once)")
        java_command(version, (), "kafka.Kafka")
    shown = f"~/{folder.relative_to(Path.home())}" if folder.is_relative_to(Path.home()) else str(folder)
    story.report("jars", "ready", f"Kafka {version} in {shown}")


def _cluster(folder: Path, brokers: int, version: str, log_dirs: int) -> KafkaCluster:
    replicas = str(min(brokers, 3))
    internal_topics = {
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "default.replication.factor": replicas,
    }
    return KafkaCluster(folder, versions=[version] * brokers, log_dir_count=log_dirs, broker_properties=internal_topics)


def _start(story: _Story, cluster: KafkaCluster) -> None:
    cluster.controller.start()
    cluster.controller.wait_until_running()
    story.report("controller", "ready", f"mockraft at {cluster.controller.bootstrap}, cluster {cluster.cluster_id}")
    with story.console.status("formatting the brokers' log directories"):
        cluster.format()
    began = time.monotonic()
    for broker in cluster.brokers.values():
        broker.start()
        folders = ", ".join(path.name for path in broker.log_dirs)
        story.report(broker.name, "started", f"Kafka {broker.version}, process {broker.pid}, log dirs {folders}")
    with story.console.status("waiting for the brokers"):
        _report_commands(story, list(cluster.brokers.values()))
    count = len(cluster.brokers)
    took = f"{time.monotonic() - began:.1f} s after the start of {'the first' if count > 1 else 'its process'}"
    story.report("cluster", "up", f"{count} broker{'s' * (count > 1)} RUNNING {took}", style="bold green")


def _report_commands(story: _Story, brokers: list[KafkaBroker]) -> None:
    colors = {"STARTING": "yellow", "RECOVERY": "cyan", "RUNNING": "green"}
    ways = {broker.node_id: list(_WAY_TO_RUNNING) for broker in brokers}
    deadline = time.monotonic() + _START_TIMEOUT_S
    while any(ways.values()):
        for broker in brokers:
            ended, log, way = not broker.running, broker.log, ways[broker.node_id]
            while way and (found := re.search(way[0][0], log)):
                _, state, what = way.pop(0)
                text = what.format(*found.groups(), bootstrap=broker.bootstrap)
                story.report(broker.name, state, text, style=colors[state])
            if way and (ended or time.monotonic() > deadline):
                why = f"ended with exit code {broker.exit_code}" if ended else f"took over {_START_TIMEOUT_S} s"
                raise KafkaProcessError(f"{broker.name} {why} before it was RUNNING{broker.last_lines()}")
        time.sleep(0.02)


def _show_what_to_do(console: Terminal, cluster: KafkaCluster) -> None:
    servers = cluster.bootstrap_servers
    first = servers.split(",")[0]
    console.print(f"\nbootstrap.servers={servers}\n", style="bold")
    lines = {
        "Kafka's scripts": [
            f"kafka-topics.sh --bootstrap-server {first} --create --topic hello --partitions 3",
            f"kafka-topics.sh --bootstrap-server {first} --describe --topic hello",
            f"kafka-metadata-quorum.sh --bootstrap-controller {cluster.controller.bootstrap} describe --replication",
        ],
        "kcat": [f"echo 'hello, KRaft' | kcat -b {first} -P -t hello", f"kcat -b {first} -C -t hello -e"],
        "Python (confluent-kafka)": [
            "from confluent_kafka import Producer",
            f"p = Producer({{'bootstrap.servers': '{servers}'}}); p.produce('hello', b'hello, KRaft'); p.flush()",
        ],
    }
    for title, commands in lines.items():
        console.print(f"  # {title}", style="dim")
        for command in commands:
            console.print(f"  {command}")
    folder = next(iter(cluster.brokers.values())).directory.parent
    console.print(f"\nProperties and logs: {folder}/*/server.log (gone at the end). Ctrl-C stops everything.\n")


def _stay(cluster: KafkaCluster, for_s: float | None) -> None:
    end = None if for_s is None else time.monotonic() + for_s
    while end is None or time.monotonic() < end:
        for process in cluster.processes:
            if not process.running:
                raise KafkaProcessError(
                    f"{process.name} ended with exit code {process.exit_code}{process.last_lines()}"
                )
        time.sleep(0.2 if end is None else max(0.0, min(0.2, end - time.monotonic())))


def _stop(cluster: KafkaCluster) -> None:
    try:
        cluster.stop()
    except (KafkaProcessError, KeyboardInterrupt):
        pass  # a second Ctrl-C, or a broker that cannot say goodbye: what is left is killed
    finally:
        cluster.kill()


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM and SIGINT; SIGINT also where a shell started the process in the background with it ignored."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


COMMANDS = {"run-kafka": Command("run-kafka", run_kafka, ABOUT)}
