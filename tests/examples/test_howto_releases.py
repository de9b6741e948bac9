"""Quoted by docs/kafka-releases.md."""

from mockraft import Controller


async def test_a_controller_of_an_older_release() -> None:
    async with Controller(release="3.9") as controller:
        levels = controller.running.controller.image.features
        assert levels["metadata.version"] == 21


async def test_levels_of_a_new_log() -> None:
    async with Controller(metadata_version="4.1", features={"group.version": 0}) as controller:
        levels = controller.running.controller.image.features
        assert (levels["metadata.version"], levels.get("group.version", 0)) == (27, 0)
