"""Descriptions of configs: of the own node, of all brokers, topics, groups and client metrics."""

from typing import TYPE_CHECKING

from mockraft.kafka_configs import described_configs
from mockraft.kafka_configs.config_keys import BROKER
from mockraft.kafka_configs.described_configs import DescribedConfig, Layers
from mockraft.releases import Behaviour
from mockraft.server.controller.settings.configs import CORDONED_LOG_DIRS

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


def describe(controller: "ControllerContext", resource_type: int, name: str) -> list[DescribedConfig]:
    """Return all configs of a topic, a group or a client metrics subscription, sorted by name."""
    own = controller.image.configs.get((resource_type, name), {})
    return described_configs.describe(_all_layers(controller), resource_type, own)


def describe_node(controller: "ControllerContext") -> list[DescribedConfig]:
    """Return all configs of this controller's node, sorted by name, including unknown keys that are set."""
    found = described_configs.describe_node(_all_layers(controller))
    if controller.has(Behaviour.CORDONED_CONFIG_IS_A_STRING):
        return [described_configs.as_string(key) if key.name == CORDONED_LOG_DIRS else key for key in found]
    return found


def describe_cluster_default(controller: "ControllerContext") -> list[DescribedConfig]:
    """Return the configs set for all brokers, sorted by name, without keys that cannot be."""
    return described_configs.describe_cluster_default(_all_layers(controller))


def _all_layers(controller: "ControllerContext") -> Layers:
    configs = controller.image.configs
    own = configs.get((BROKER, str(controller.config.node_id)), {})
    return described_configs.layers_of(
        own, configs.get((BROKER, ""), {}), controller.static_configs, controller.release
    )
