"""Example for docs/fleets.md."""

from mockraft import Controller
from mockraft.brokers.fleet import FleetRunner, steps_of

TROUBLE = steps_of(
    {
        "steps": [
            {"at_s": 1, "do": "kill", "percent": 10, "back_after_s": 3},
            {"at_s": 2, "do": "rolling-restart", "racks": ["a"], "at_once": 5, "every_s": 0.5},
            {"at_s": 3, "do": "disconnect", "count": 10},
        ]
    }
)


async def test_fleet_of_sixty_brokers_recovers_from_failures() -> None:
    async with (
        Controller(session_timeout_ms=3000) as controller,
        FleetRunner.joining(
            controller.bootstrap,
            controller.cluster_id,
            60,
            racks=("a", "b", "c"),
            script=TROUBLE,
            shares_replication=True,
            heartbeat_interval_ms=200,
            session_timeout_ms=3000,
        ) as fleet,
    ):
        figures = await fleet.until(lambda figures: figures.unfenced == 60)

        assert figures.mistakes == {}
        assert figures.died == {}
        assert figures.answered > 60
