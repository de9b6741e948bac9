"""The command `mockraft` itself."""

from importlib.metadata import version

from mockraft.wire.schema_files import RELEASE

from .cli import invoke


def test_version_shows_the_package_and_kafka_release() -> None:
    told = invoke("--version")
    assert told.exit_code == 0
    assert told.stdout == f"mockraft {version('mockraft')}, speaking as Kafka {RELEASE}\n"


def test_without_a_command_it_teaches_which_there_are() -> None:
    told = invoke()
    assert told.exit_code == 2
    assert all(f"  {name} " in told.output for name in ("serve", "run", "broker", "capture", "conformance", "spark"))
