"""UpdateFeatures (KIP-584, KIP-1022)."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import ANYTHING, InAnyOrder, either, expect, like
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

TEST = "FeatureControlManagerTest"
METADATA, GROUP, TRANSACTION = "metadata.version", "group.version", "transaction.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
PREFIX = "The update failed for all features since the following feature had an error: "


async def update(
    world: World, *updates: tuple[str, int, int], answer: object = None, version: int = 2, **fields: object
) -> None:
    named = [{"feature": feature, "maxVersionLevel": level, "upgradeType": kind} for feature, level, kind in updates]
    request: Tree = {"timeoutMs": 10_000, "featureUpdates": named, **fields}
    await world.send("UpdateFeatures", request, answer=answer or {"errorCode": 0}, version=version)


def change_of_group(world: World) -> tuple[str, int, int]:
    """Return an update of group.version to its other level."""
    before = world.target.finalized_features.get(GROUP, 0)
    return GROUP, 1 - before, SAFE if before else UPGRADE


def refused(message: object) -> Tree:
    return {"errorCode": codes.INVALID_UPDATE_VERSION, "errorMessage": message}


@case("no updates are no trouble", f"{TEST}.testUpdateFeatures")
async def no_updates_are_no_trouble(world: World) -> None:
    await update(world)


@case("a feature that is at its level already is written again", "FeatureControlManager", Rank.QUIRK, alone=True)
async def feature_that_is_at_its_level_already_is_written_again(world: World) -> None:
    await update(world, (METADATA, world.level, UPGRADE))
    await world.wrote(record("FeatureLevel", name=METADATA, featureLevel=world.level))


@case("a feature goes up and down with one record each", f"{TEST}.testCreateFeatureLevelRecords", alone=True)
async def feature_goes_up_and_down_with_one_record_each(world: World) -> None:
    before = world.target.finalized_features.get(GROUP, 0)
    levels = (1 - before, before)
    back = {"feature": GROUP, "maxVersionLevel": before, "upgradeType": UPGRADE if before else SAFE}
    world.afterwards("UpdateFeatures", {"timeoutMs": 10_000, "featureUpdates": [back]})
    for level in levels:
        await update(world, (GROUP, level, UPGRADE if level else SAFE))
        await world.wrote(record("FeatureLevel", name=GROUP, featureLevel=level))


@case("features that are only validated are not written", f"{TEST}.testUpdateFeatures", alone=True)
async def features_that_are_only_validated_are_not_written(world: World) -> None:
    await update(world, change_of_group(world), validateOnly=True)
    await world.wrote()


@case("one bad feature has all refused", f"{TEST}.testUpdateFeaturesErrorCases", alone=True)
async def one_bad_feature_has_all_refused(world: World) -> None:
    await update(world, change_of_group(world), ("no.such", 1, UPGRADE), answer=refused(like(f"{PREFIX}.*no.such.*")))
    await world.wrote()


REFUSALS: list[tuple[str, tuple[str, int, int], object]] = [
    ("an unknown kind of upgrade", (GROUP, 1, 0), like(f"{PREFIX}.*The controller does not support the given upgrade type.")),
    ("a negative level", (GROUP, -1, SAFE), like(f"{PREFIX}.*A feature version cannot be less than 0.")),
    ("a feature that nobody knows", ("no.such", 1, UPGRADE), like(f"{PREFIX}.*Invalid update version 1 for feature no.such. Local controller -?[0-9]+ does not support this feature.")),
    ("a level that nobody knows", (GROUP, 99, UPGRADE), like(f"{PREFIX}.*Invalid update version 99 for feature group.version. Local controller -?[0-9]+ only supports versions 0-1")),
    ("a metadata.version below 7", (METADATA, 6, SAFE), like(f"{PREFIX}.*Invalid update version 6 for feature metadata.version. Local controller -?[0-9]+ only supports versions 7-[0-9]+")),
]  # fmt: skip


@cases("{} is refused", f"{TEST}.testUpdateFeaturesErrorCases", REFUSALS)
async def invalid_feature_update_is_refused(world: World, change: tuple[str, int, int], message: object) -> None:
    await update(world, change, answer=refused(message), validateOnly=True)


@case("a lower level by an upgrade is refused", f"{TEST}.testCannotUpgradeToLowerVersion", since=8)
async def lower_level_by_upgrade_is_refused(world: World) -> None:
    message = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
    await update(world, (METADATA, world.level - 1, UPGRADE), answer=refused(like(f".*{message}")), validateOnly=True)


@case("a higher level by a downgrade is refused", f"{TEST}.testCannotDowngradeToHigherVersion", below_newest=True)
async def higher_level_by_downgrade_is_refused(world: World) -> None:
    for kind in (SAFE, UNSAFE):
        answer = refused(like(".*Can't downgrade to a newer version."))
        await update(world, (METADATA, world.level + 1, kind), answer=answer, validateOnly=True)


@case(
    "a safe downgrade that would lose metadata is refused",
    f"{TEST}.testCannotUseSafeDowngradeIfMetadataChanged",
    since=8,
    has=Behaviour.DOWNGRADE_NAMES_BOTH_LEVELS,
)
async def safe_downgrade_that_would_lose_metadata_is_refused(world: World) -> None:
    message = "Refusing to perform the requested downgrade because it might delete metadata information."
    answer = refused(like(f".*Unsupported metadata.version downgrade from {world.level} to 7. {message}"))
    await update(world, (METADATA, 7, SAFE), answer=answer, validateOnly=True)


@case(
    "a downgrade that would lose metadata names the wanted level",
    f"{TEST}.testCannotUseSafeDowngradeIfMetadataChanged",
    since=8,
    lacks=Behaviour.DOWNGRADE_NAMES_BOTH_LEVELS,
)
async def downgrade_that_would_lose_metadata_names_wanted_level(world: World) -> None:
    reasons = {
        SAFE: "Refusing to perform the requested downgrade because it might delete metadata information.",
        UNSAFE: "Unsafe metadata downgrade is not supported in this version.",
    }
    for kind, reason in reasons.items():
        message = like(f".*Invalid metadata.version 7. {reason}")
        answer = either({"results": [{"feature": METADATA, "errorMessage": message}]}, {"errorMessage": message})
        await update(world, (METADATA, 7, kind), answer=answer, version=1, validateOnly=True)


@case(
    "an unsafe downgrade that would lose metadata is refused",
    f"{TEST}.testUnsafeDowngradeIsTemporarilyDisabled",
    since=8,
)
async def unsafe_downgrade_that_would_lose_metadata_is_refused(world: World) -> None:
    message = like(".*Unsafe metadata downgrade is not supported in this version.")
    await update(world, (METADATA, 7, UNSAFE), answer=refused(message), validateOnly=True)


@case("a broker that does not know a level holds it up", f"{TEST}.testUpdateFeatures", alone=True, below_newest=True)
async def broker_that_does_not_know_level_holds_it_up(world: World) -> None:
    a = await world.register(features=world.features(metadata_version=(world.level, world.level)))
    answer = refused(like(f".*Broker {a.id} only supports versions {world.level}"))
    await update(world, (METADATA, world.level + 1, UPGRADE), answer=answer, validateOnly=True)


@case("eligible leaders need a metadata.version of 23", "KIP-966, EligibleLeaderReplicasVersion", Rank.SHOULD, until=22)
async def eligible_leaders_need_metadata_version_of_23(world: World) -> None:
    answer = refused(ANYTHING)
    await update(world, ("eligible.leader.replicas.version", 1, UPGRADE), answer=answer, validateOnly=True)


@case("kraft.version does not go down", "KIP-853", Rank.SHOULD, has=Behaviour.KRAFT_VERSION_STAYS)
async def kraft_version_does_not_go_down(world: World) -> None:
    response = await world.send("ApiVersions", {"clientSoftwareName": "c", "clientSoftwareVersion": "1"})
    levels = {each["name"]: each["maxVersionLevel"] for each in response["finalizedFeatures"]}
    if levels.get("kraft.version", 0) == 1:
        answer = {"errorCode": codes.INVALID_UPDATE_VERSION}
        await update(world, ("kraft.version", 0, SAFE), answer=answer, validateOnly=True)
    else:
        expect("kraft.version", 0, levels.get("kraft.version", 0))


@case("an update of kraft.version changes nothing", "KIP-853", Rank.QUIRK, lacks=Behaviour.KRAFT_VERSION_STAYS)
async def update_of_kraft_version_changes_nothing(world: World) -> None:
    await update(world, ("kraft.version", 0, SAFE), validateOnly=True)


@case(
    "kraft.version 0 is written and means nothing",
    "KIP-853",
    Rank.QUIRK,
    alone=True,
    lacks=Behaviour.KRAFT_VERSION_STAYS,
)
async def kraft_version_0_is_written_and_means_nothing(world: World) -> None:
    before = world.target.finalized_features.get("kraft.version", 0)
    await update(world, ("kraft.version", 0, SAFE), version=1)
    await world.wrote(record("FeatureLevel", name="kraft.version", featureLevel=0))
    response = await world.send("ApiVersions", {"clientSoftwareName": "c", "clientSoftwareVersion": "1"})
    levels = {each["name"]: each["maxVersionLevel"] for each in response["finalizedFeatures"]}
    expect("kraft.version", before, levels.get("kraft.version", 0))


@case("features are told one by one in version 1", "UpdateFeaturesResponse.json", Rank.SHOULD)
async def version_1_returns_a_result_per_feature(world: World) -> None:
    answer = {"errorCode": 0, "results": [{"feature": METADATA, "errorCode": 0}]}
    await update(world, (METADATA, world.level, UPGRADE), answer=answer, version=1, validateOnly=True)


def said(feature: str, code: int, message: object) -> Tree:
    return {"feature": feature, "errorCode": code, "errorMessage": message}


UNKNOWN = "no.such"
NOT_KNOWN = f"Invalid update version 1 for feature {UNKNOWN}. Local controller -?[0-9]+ does not support this feature."


@case(
    "a good feature beside a bad one is written",
    f"{TEST}.testUpdateFeaturesErrorCases",
    alone=True,
    lacks=Behaviour.FEATURES_FAIL_TOGETHER,
)
async def good_feature_beside_bad_one_is_written(world: World) -> None:
    results = [said(METADATA, 0, None), said(UNKNOWN, codes.INVALID_UPDATE_VERSION, like(NOT_KNOWN))]
    answer = {"errorCode": 0, "errorMessage": "", "results": InAnyOrder(results)}
    await update(world, (METADATA, world.level, UPGRADE), (UNKNOWN, 1, UPGRADE), answer=answer, version=1)
    await world.wrote(record("FeatureLevel", name=METADATA, featureLevel=world.level))


@case(
    "a good feature beside a bad one has no result",
    f"{TEST}.testUpdateFeaturesErrorCases",
    alone=True,
    has=Behaviour.FEATURES_FAIL_TOGETHER,
)
async def good_feature_beside_bad_one_has_no_result(world: World) -> None:
    answer = {**refused(like(f"{PREFIX}{NOT_KNOWN}")), "results": []}
    await update(world, (METADATA, world.level, UPGRADE), (UNKNOWN, 1, UPGRADE), answer=answer, version=1)
    await world.wrote()


@case(
    "the result of a feature has no message",
    "UpdateFeaturesResponse.json",
    Rank.QUIRK,
    lacks=Behaviour.FEATURES_FAIL_TOGETHER,
)
async def result_has_no_message(world: World) -> None:
    answer = {"errorCode": 0, "errorMessage": "", "results": [said(METADATA, 0, None)]}
    await update(world, (METADATA, world.level, UPGRADE), answer=answer, version=1, validateOnly=True)


@case(
    "the result of a feature has the message NONE",
    "UpdateFeaturesResponse.json",
    Rank.QUIRK,
    has=Behaviour.FEATURES_FAIL_TOGETHER,
)
async def result_has_the_message_none(world: World) -> None:
    answer = {"errorCode": 0, "errorMessage": None, "results": [said(METADATA, 0, "NONE")]}
    await update(world, (METADATA, world.level, UPGRADE), answer=answer, version=1, validateOnly=True)


@case(
    "level 0 of an unknown feature is accepted",
    "FeatureControlManager",
    Rank.QUIRK,
    lacks=Behaviour.FEATURES_FAIL_TOGETHER,
)
async def level_0_of_unknown_feature_is_accepted(world: World) -> None:
    answer = {"errorCode": 0, "results": [said(UNKNOWN, 0, None)]}
    await update(world, (UNKNOWN, 0, UPGRADE), answer=answer, version=1, validateOnly=True)


@case(
    "level 0 of an unknown feature is refused",
    "FeatureControlManager",
    Rank.SHOULD,
    has=Behaviour.FEATURES_FAIL_TOGETHER,
)
async def level_0_of_unknown_feature_is_refused(world: World) -> None:
    message = f"{PREFIX}Invalid update version 0 for feature {UNKNOWN}. Feature {UNKNOWN} not found."
    await update(world, (UNKNOWN, 0, UPGRADE), answer=refused(message), validateOnly=True)


NOT_UPDATED: list[tuple[str, str, int | None, int, str]] = [
    ("an unknown kind of upgrade", METADATA, None, 0, "The controller does not support the given upgrade type."),
    ("a negative level", METADATA, -1, SAFE, "A feature version cannot be less than 0."),
    ("a feature that nobody knows", UNKNOWN, 1, UPGRADE, "Local controller -?[0-9]+ does not support this feature."),
    ("a level that nobody knows", METADATA, 999, UPGRADE, "Local controller -?[0-9]+ only supports versions 1-[0-9]+"),
]
"""Name, feature, level (None: the present one), kind of upgrade, the end of the message."""


@cases(
    "{} is refused in its result",
    f"{TEST}.testUpdateFeaturesErrorCases",
    NOT_UPDATED,
    lacks=Behaviour.FEATURES_FAIL_TOGETHER,
)
async def feature_is_refused_in_its_result(
    world: World, feature: str, level: int | None, kind: int, message: str
) -> None:
    wanted = world.level if level is None else level
    text = like(f"Invalid update version {wanted} for feature {feature}. {message}")
    answer = {"errorCode": 0, "results": [said(feature, codes.INVALID_UPDATE_VERSION, text)]}
    await update(world, (feature, wanted, kind), answer=answer, version=1, validateOnly=True)


@case("a metadata.version below 3.3 is refused by that name", "FeatureControlManager", before_release="4.0")
async def metadata_version_below_3_3_is_refused(world: World) -> None:
    message = "Invalid metadata.version 3. Unable to set a metadata.version less than 3.3-IV0"
    answer = {"errorCode": 0, "results": [said(METADATA, codes.INVALID_UPDATE_VERSION, message)]}
    for kind in (SAFE, UNSAFE):
        await update(world, (METADATA, 3, kind), answer=answer, version=1, validateOnly=True)
