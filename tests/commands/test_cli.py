"""The command `mockraft` itself."""

from importlib.metadata import version

from mockraft.cli import application
from mockraft.commands.grouped_help import GroupedCommands
from mockraft.wire.connection import SOFTWARE_VERSION
from typer.main import get_group

from .cli import invoke


def test_version_shows_the_package_and_kafka_release() -> None:
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.stdout == f"mockraft {version('mockraft')}, speaking as Kafka {SOFTWARE_VERSION}\n"


def test_without_a_command_help_lists_each_command_once_under_a_heading() -> None:
    result = invoke()
    assert result.exit_code == 2
    grouped = [name for names in GroupedCommands.groups.values() for name in names]
    assert sorted(grouped) == sorted(get_group(application()).commands)
    assert all(result.output.count(f"\n  {name} ") == 1 for name in grouped)
    assert "\nCompare with Kafka:\n" in result.output
