"""The steps of a release check that need a clone: what of mockraft fails with the release."""

from __future__ import annotations

from confluent_kafka import KafkaException
from mockraft.codegen.generate import generate_release
from mockraft.kafka.jars import KafkaUnavailableError, jars_directory, java
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaProcessError, random_uuid
from mockraft.kafka.release_tables import SyncError, sync

from tests.clients import consume, create_topic, produce

from .judged import judge_controller, judge_messages
from .report import CheckStep, FailedError, Findings, block
from .subject import Subject

TOPIC = "letters"
VALUES = [f"letter-{number}" for number in range(100)]


def fetch_jars(subject: Subject) -> None:
    """Fetch the release by Maven unless it is in the cache. Raises KafkaUnavailableError: no step can run without."""
    java()
    try:
        jars_directory(subject.kafka_version, subject.progress)
    except KafkaUnavailableError as error:
        raise KafkaUnavailableError(
            f"{error} (release candidates are rarely there: JARS=DIR takes the libs folder of a distribution)"
        ) from None


def read_classes(subject: Subject) -> Findings:
    """Sync the release into an empty folder."""
    try:
        folder = sync(subject.kafka_version, subject.schemas)
    except SyncError as error:
        raise FailedError(Findings(str(error).partition("\n")[0], block(str(error)))) from error
    return Findings(f"{sum(1 for _ in folder.rglob('*.json'))} files of specs and facts")


def generate_code(subject: Subject) -> Findings:
    """Generate the code of all messages and compile it, without writing it."""
    files = generate_release(subject.synced)
    for path, text in files.items():
        compile(text, path, "exec")
    return Findings(f"{len(files)} files compile")


def run_broker(subject: Subject) -> Findings:
    """Run a broker of the release on mockraft; a client produces and consumes; the broker leaves."""
    served, cluster_id = subject.served, random_uuid()
    options = ("--release", served.name)
    controller = MockraftController(subject.folder / "mockraft", cluster_id, options=options)
    broker = KafkaBroker(
        1, subject.folder / "broker-1", cluster_id, controller.bootstrap, version=subject.kafka_version
    )
    try:
        controller.start()
        controller.wait_until_running()
        broker.format()
        broker.start()
        seconds = broker.wait_until_running()
        subject.progress(f"the broker runs after {seconds:.1f} s")
        create_topic(broker.bootstrap, TOPIC, partitions=3)
        produce(broker.bootstrap, TOPIC, VALUES)
        read = consume(broker.bootstrap, TOPIC)
        code = broker.stop()
    except (KafkaProcessError, KafkaException, TimeoutError, AssertionError) as error:
        # A KafkaProcessError ends with the broker's last lines already.
        own = "" if isinstance(error, KafkaProcessError) else broker.last_lines()
        logs = f"{error}{own}\n\n{controller.name}:{controller.last_lines()}"
        raise FailedError(Findings(str(error).partition("\n")[0], block(logs))) from error
    finally:
        broker.kill()
        controller.kill()
    if sorted(read) != sorted(VALUES):
        raise FailedError(Findings(f"{len(VALUES)} records were produced and {len(read)} consumed"))
    if code != 143:
        raise FailedError(Findings(f"the broker ended with exit code {code}, not 143", block(broker.last_lines())))
    return Findings(f"on `serve --release {served.name}`, {len(VALUES)} records produced and consumed, clean shutdown")


STEPS: tuple[CheckStep[Subject], ...] = (
    CheckStep("sync", "can its classes be read?", read_classes),
    CheckStep("generate", "can its messages be generated?", generate_code, after=("sync",)),
    CheckStep("broker", "does its broker run on mockraft?", run_broker),
    CheckStep("oracle", "do its classes write the same bytes?", judge_messages, after=("generate",)),
    CheckStep("conformance", "does its controller answer alike?", judge_controller),
)
