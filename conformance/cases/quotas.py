"""AlterClientQuotas."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import GOOD, Fields, InAnyOrder, like, refused
from mockraft.conformance.records import Expected, record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

TEST = "ClientQuotaControlManagerTest"
QUOTA_VALUES = "ClientQuotaControlManager.validateQuotaKeyValue"
USER, CLIENT, IP = "user", "client-id", "ip"
PRODUCER, CONSUMER, PERCENTAGE = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
Entity = Sequence[tuple[str, str | None]]


def entity(of: Entity) -> list[Tree]:
    return [{"entityType": kind, "entityName": name} for kind, name in of]


def entry(of: Entity, **changes: float | None) -> Tree:
    """None removes."""
    ops = [
        {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
        for key, value in changes.items()
    ]
    return {"entity": entity(of), "ops": ops}


async def alter(world: World, *entries: Tree, answer: Sequence[Fields], **fields: object) -> None:
    """`answer` is the expected result of the entries, in any order."""
    request = {"entries": list(entries), **fields}
    await world.send("AlterClientQuotas", request, answer={"entries": InAnyOrder(answer)})


@case("a user's quotas are one record each", f"{TEST}.testAlterAndRemove")
async def users_quotas_are_one_record_each(world: World) -> None:
    user: Entity = [(USER, world.name("ann"))]
    await alter(world, entry(user, **{PRODUCER: 1024.0, PERCENTAGE: 12.5}), answer=[{**GOOD, "entity": entity(user)}])
    same = {"entity": entity(user)}
    await world.wrote(
        record("ClientQuota", key=PRODUCER, value=1024.0, remove=False, **same),
        record("ClientQuota", key=PERCENTAGE, value=12.5, remove=False, **same),
        in_any_order=True,
    )


SECOND: list[tuple[str, float | None, list[Expected]]] = [
    ("as it was is not written", 1.0, []),
    ("removed is one record", None, [record("ClientQuota", key=PRODUCER, remove=True)]),
]


@cases("a quota that is {}", f"{TEST}.testAlterAndRemove", SECOND)
async def second_alteration_writes_what_changes(world: World, rate: float | None, expected: list[Expected]) -> None:
    user: Entity = [(USER, world.name("ann"))]
    await alter(world, entry(user, **{PRODUCER: 1.0}), answer=[GOOD])
    await world.records()
    await alter(world, entry(user, **{PRODUCER: rate}), answer=[GOOD])
    await world.wrote(*expected)


@case("a quota that was never there is removed without a record", f"{TEST}.testAlterAndRemove", Rank.SHOULD)
async def quota_that_was_never_there_is_removed_without_record(world: World) -> None:
    user: Entity = [(USER, world.name("ann"))]
    await alter(world, entry(user, **{PRODUCER: None, "no.such": None}), answer=[GOOD])
    await world.wrote()


@case("an infinite quota is refused", QUOTA_VALUES, Rank.SHOULD, has=Behaviour.QUOTAS_ARE_FINITE)
async def infinite_quota_is_refused(world: World) -> None:
    answer = [refused(codes.INVALID_REQUEST, f"Quota {PERCENTAGE} must be a finite number")]
    await alter(world, entry([(USER, world.name("ann"))], **{PERCENTAGE: math.inf}), answer=answer)
    await world.wrote()


@case("an infinite request percentage is written", QUOTA_VALUES, Rank.QUIRK, lacks=Behaviour.QUOTAS_ARE_FINITE)
async def infinite_request_percentage_is_written(world: World) -> None:
    await alter(world, entry([(USER, world.name("ann"))], **{PERCENTAGE: math.inf}), answer=[GOOD])
    await world.wrote(record("ClientQuota", key=PERCENTAGE, remove=False))


@case("a rate that is no number is refused", QUOTA_VALUES, Rank.SHOULD, has=Behaviour.QUOTAS_ARE_FINITE)
async def rate_that_is_no_number_is_refused(world: World) -> None:
    answer = [refused(codes.INVALID_REQUEST, f"Quota {PRODUCER} must be a finite number")]
    for rate in (math.nan, math.inf):
        await alter(world, entry([(USER, world.name("ann"))], **{PRODUCER: rate}), answer=answer)
    await world.wrote()


@case("a rate that is no number is written", QUOTA_VALUES, Rank.QUIRK, lacks=Behaviour.QUOTAS_ARE_FINITE)
async def rate_that_is_no_number_is_written(world: World) -> None:
    await alter(world, entry([(USER, world.name("ann"))], **{PRODUCER: math.nan}), answer=[GOOD])
    await world.wrote(record("ClientQuota", key=PRODUCER, remove=False))


@case("an infinite rate is too large", QUOTA_VALUES, Rank.SHOULD, lacks=Behaviour.QUOTAS_ARE_FINITE)
async def infinite_rate_is_too_large(world: World) -> None:
    answer = [refused(codes.INVALID_REQUEST, f"Proposed value for {PRODUCER} is too large for a LONG.")]
    await alter(world, entry([(USER, world.name("ann"))], **{PRODUCER: math.inf}), answer=answer)
    await world.wrote()


@case("quotas that are only validated are not written", "QuorumController.alterClientQuotas")
async def quotas_that_are_only_validated_are_not_written(world: World) -> None:
    await alter(world, entry([(USER, world.name("ann"))], **{PRODUCER: 1.0}), validateOnly=True, answer=[GOOD])
    await world.wrote()


@case("users, clients, pairs of them and addresses have quotas of their own", f"{TEST}.testEntityTypes")
async def users_clients_pairs_of_them_and_addresses_have_quotas_of_their_own(world: World) -> None:
    user, client = world.name("ann"), world.name("c")
    pairs: list[Entity] = [[(USER, user), (CLIENT, client)], [(USER, user), (CLIENT, None)]]
    entities: list[Entity] = [[(USER, user)], [(CLIENT, client)], *pairs]
    entries = [entry(each, **{CONSUMER: float(number + 1)}) for number, each in enumerate(entities)]
    await alter(world, *entries, answer=[{**GOOD, "entity": InAnyOrder(entity(each))} for each in entities])
    await world.wrote(
        *(record("ClientQuota", value=float(number + 1)) for number in range(len(entities))), in_any_order=True
    )


@case("an address may have a rate of connections", f"{TEST}.testConfigKeysForEntityTypeWithIp", alone=True)
async def address_may_have_rate_of_connections(world: World) -> None:
    for address in ("10.11.12.13", "fe80::1", "localhost"):
        await alter(world, entry([(IP, address)], **{CONNECTIONS: 9.0}), answer=[GOOD])
        await world.wrote(record("ClientQuota", key=CONNECTIONS, value=9.0))


@case("what is no address has no rate of connections", f"{TEST}.testConfigKeysForUnresolvableIpEntity")
async def invalid_address_has_no_connection_rate(world: World) -> None:
    answer = [refused(codes.INVALID_REQUEST, "no such host! is not a valid IP or resolvable host.")]
    await alter(world, entry([(IP, "no such host!")], **{CONNECTIONS: 9.0}), answer=answer)


@case("good and bad entities are told apart", f"{TEST}.testAlterAndRemove")
async def bad_entity_does_not_affect_good_ones(world: World) -> None:
    user: Entity = [(USER, world.name("ann"))]
    bad: Entity = [("group", world.name("g"))]
    answer = [{**GOOD, "entity": entity(user)}, {"errorCode": codes.INVALID_REQUEST, "entity": entity(bad)}]
    await alter(world, entry(user, **{PRODUCER: 1.0}), entry(bad, **{PRODUCER: 1.0}), answer=answer)
    await world.wrote(record("ClientQuota"))


@case(
    "an entity that is named twice is refused, and its first entry is written", "ClientQuotaControlManager", Rank.QUIRK
)
async def entity_that_is_named_twice_is_refused_and_its_first_entry_is_written(world: World) -> None:
    user: Entity = [(USER, world.name("ann"))]
    entries = [entry(user, **{PRODUCER: rate}) for rate in (1.0, 2.0)]
    await alter(world, *entries, answer=[refused(codes.INVALID_REQUEST, like(".*"))])
    await world.wrote(record("ClientQuota", value=1.0))


ADDRESS, ANN = [(IP, "10.0.0.1")], [(USER, "ann")]
NOT_COMBINED = like(".*IP entity should ?not be combined with User or ClientId")
INVALID_KEY = "Invalid configuration key "
REFUSALS: list[tuple[str, Entity, dict[str, float], object]] = [
    ("no entity", [], {PRODUCER: 9.0}, "Invalid empty client quota entity"),
    ("an unknown type of entity", [("group", "g")], {PRODUCER: 9.0}, like("Unhandled client quota entity type: group")),
    ("an empty name", [(USER, "")], {PRODUCER: 9.0}, like(".*")),
    ("an address and a user", ADDRESS + ANN, {CONNECTIONS: 9.0}, NOT_COMBINED),
    ("a user's key for an address", ADDRESS, {PRODUCER: 9.0}, INVALID_KEY + PRODUCER),
    ("an address's key for a user", ANN, {CONNECTIONS: 9.0}, INVALID_KEY + CONNECTIONS),
    ("an unknown key", ANN, {"no.such": 9.0}, INVALID_KEY + "no.such"),
    ("a quota of zero", ANN, {PRODUCER: 0.0}, f"Quota {PRODUCER} must be greater than 0"),
    ("a negative quota", ANN, {PERCENTAGE: -1.0}, f"Quota {PERCENTAGE} must be greater than 0"),
    ("a fraction of a byte", ANN, {PRODUCER: 1.5}, f"{PRODUCER} cannot be a fractional value."),
    ("more connections than an int", ADDRESS, {CONNECTIONS: 2.0**31}, like(f".*{CONNECTIONS}.*")),
    ("more bytes than a long", ANN, {PRODUCER: 2.0**64}, like(f".*{PRODUCER}.*")),
]


@cases("{} is refused", f"{TEST}.testConfigKeysError", REFUSALS)
async def invalid_quota_is_refused(world: World, of: Entity, changes: dict[str, float], message: object) -> None:
    await alter(world, entry(of, **changes), answer=[refused(codes.INVALID_REQUEST, message)], validateOnly=True)
