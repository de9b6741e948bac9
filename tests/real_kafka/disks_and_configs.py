"""The ids in the directories of brokers, and changes of their configs."""

from pathlib import Path

from mockraft import Controller
from mockraft.brokers.log_dirs.ensemble import META_PROPERTIES, MetaProperties
from mockraft.server.controller.result import ControllerResult

from ..configs import BROKER, config_record


def directory_id_of(path: Path) -> bytes:
    """The id in the meta.properties of a directory."""
    found = MetaProperties.read((path / META_PROPERTIES).read_bytes()).directory_id
    assert found is not None
    return found


def set_config(controller: Controller, broker_id: int, name: str, value: str | None) -> None:
    """As if somebody had changed a broker's config through a broker."""
    record = config_record(BROKER, str(broker_id), name, value)
    running = controller.running
    running.controller.commit(ControllerResult([record], None), running.clock.now_ms())
