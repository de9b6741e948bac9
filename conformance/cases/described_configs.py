"""DescribeConfigs at a controller."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.cases.configs import BROKER, CLIENT_METRICS, GROUP, SET, TOPIC, alter, resource
from mockraft.conformance.expectation import ANYTHING, eventually
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

SOURCE = "ConfigHelper.handleDescribeConfigsRequest"
OWN, DEFAULT = 1, 5


async def describe(world: World, kind: int, name: str, *keys: str, answer: Tree, **fields: object) -> None:
    """Repeat the request until the answer is as expected: configs are read from the last published image."""
    request: Tree = {
        "resources": [{"resourceType": kind, "resourceName": name, "configurationKeys": list(keys) or None}],
        **fields,
    }
    expected = {"results": [{"resourceType": kind, "resourceName": name, **answer}]}
    await eventually("the answer to DescribeConfigs", expected, lambda: world.send("DescribeConfigs", request))


PLAIN: Tree = {"readOnly": False, "isSensitive": False, "synonyms": []}
DESCRIBED: list[tuple[str, Tree]] = [
    ("config is told with where it comes from", {"name": "flush.ms", "value": "4", "configSource": OWN}),
    (
        "default is told as such",
        {"name": "cleanup.policy", "value": "delete", "configSource": DEFAULT, "configType": 7},
    ),
]


@cases("a topic's {}", SOURCE, DESCRIBED)
async def topic_config_is_described(world: World, described: Tree) -> None:
    topic, _ = await world.replicated(1, flush_ms="4")
    answer = {"errorCode": 0, "configs": [PLAIN | described]}
    await describe(world, TOPIC, topic.name, described["name"], answer=answer)


@case("synonyms of a config are told on demand", "KIP-226")
async def synonyms_are_described_on_request(world: World) -> None:
    topic = await world.topic([await world.broker()], flush_ms="4")
    synonyms = [{"name": "flush.ms", "value": "4", "source": OWN}]
    answer = {"configs": [{"name": "flush.ms", "synonyms": synonyms}]}
    await describe(world, TOPIC, topic.name, "flush.ms", answer=answer, includeSynonyms=True)


@case("keys that nobody knows are not told", SOURCE, Rank.SHOULD)
async def unknown_keys_are_not_described(world: World) -> None:
    topic = await world.topic([await world.broker()])
    await describe(world, TOPIC, topic.name, "no.such", answer={"errorCode": 0, "configs": []})


@case("a topic that is not there has no configs", SOURCE)
async def topic_that_is_not_there_has_no_configs(world: World) -> None:
    await describe(
        world, TOPIC, world.name("none"), answer={"errorCode": codes.UNKNOWN_TOPIC_OR_PARTITION, "configs": []}
    )
    await describe(world, TOPIC, "no/where", answer={"errorCode": codes.INVALID_TOPIC_EXCEPTION, "configs": []})


@case("a controller describes no broker but itself", SOURCE)
async def controller_describes_no_broker_but_itself(world: World) -> None:
    a = await world.broker()
    await describe(world, BROKER, str(a.id), answer={"errorCode": codes.INVALID_REQUEST, "configs": []})
    await describe(world, BROKER, "x", answer={"errorCode": codes.INVALID_REQUEST, "configs": []})


@case("client metrics and groups are described", "KIP-714, KIP-848", Rank.SHOULD, has=Behaviour.GROUPS_HAVE_CONFIGS)
async def client_metrics_and_groups_are_described(world: World) -> None:
    name = world.name("m")
    await alter(world, resource(CLIENT_METRICS, name, (SET, "interval.ms", "100")), answer=[{"errorCode": 0}])
    await describe(world, CLIENT_METRICS, name, "interval.ms", answer={"configs": [{"value": "100"}]})
    described = {"name": "consumer.session.timeout.ms", "value": ANYTHING, "configSource": ANYTHING}
    await describe(world, GROUP, world.name("g"), "consumer.session.timeout.ms", answer={"configs": [described]})


@case("a group's assignor is the broker's", SOURCE, Rank.SHOULD, since_release="4.4")
async def assignor_of_a_group_is_the_brokers(world: World) -> None:
    synonyms = [{"name": "group.streams.assignors", "value": "sticky", "source": DEFAULT}]
    answer: Tree = {"configs": [{"name": "streams.assignor.name", "value": "sticky", "synonyms": synonyms}]}
    await describe(world, GROUP, world.name("g"), "streams.assignor.name", answer=answer, includeSynonyms=True)


GROUP_DEFAULT: Tree = {"name": "consumer.session.timeout.ms", "value": "45000", "configSource": DEFAULT}


@case(
    "the default of a group's config names the broker's key",
    SOURCE,
    Rank.SHOULD,
    has=Behaviour.GROUP_SYNONYMS_ARE_THE_BROKERS,
)
async def default_of_a_group_has_the_brokers_key(world: World) -> None:
    synonyms = [{"name": "group.consumer.session.timeout.ms", "value": "45000", "source": DEFAULT}]
    answer: Tree = {"configs": [{**GROUP_DEFAULT, "synonyms": synonyms}]}
    await describe(world, GROUP, world.name("g"), "consumer.session.timeout.ms", answer=answer, includeSynonyms=True)


@case(
    "the default of a group's config names its own key",
    SOURCE,
    Rank.QUIRK,
    has=Behaviour.GROUPS_HAVE_CONFIGS,
    lacks=Behaviour.GROUP_SYNONYMS_ARE_THE_BROKERS,
)
async def default_of_a_group_has_its_own_key(world: World) -> None:
    synonyms = [{"name": "consumer.session.timeout.ms", "value": "45000", "source": DEFAULT}]
    answer: Tree = {"configs": [{**GROUP_DEFAULT, "synonyms": synonyms}]}
    await describe(world, GROUP, world.name("g"), "consumer.session.timeout.ms", answer=answer, includeSynonyms=True)


@case(
    "client metrics that are not set are described with their defaults",
    "KIP-714",
    Rank.SHOULD,
    has=Behaviour.CLIENT_METRICS_HAVE_DEFAULTS,
)
async def client_metrics_have_defaults(world: World) -> None:
    answer: Tree = {"configs": [{"name": "interval.ms", "value": "300000", "configSource": DEFAULT}]}
    await describe(world, CLIENT_METRICS, world.name("m"), "interval.ms", answer=answer)


@case(
    "client metrics that are not set are not described",
    "KIP-714",
    Rank.QUIRK,
    lacks=Behaviour.CLIENT_METRICS_HAVE_DEFAULTS,
)
async def client_metrics_have_no_defaults(world: World) -> None:
    await describe(world, CLIENT_METRICS, world.name("m"), "interval.ms", answer={"errorCode": 0, "configs": []})


@case("an unknown type of resource has the whole request refused", SOURCE, Rank.SHOULD)
async def unknown_resource_type_refuses_the_whole_request(world: World) -> None:
    answer = {"errorCode": codes.INVALID_REQUEST, "configs": []}
    await describe(world, 3, "x", answer=answer)
