"""Distribution of tests over workers: one worker makes an expensive fixture for all, and long groups start first.

xdist's own `--dist loadgroup` reads `Item._nodeid`, which pytest 9.2 no longer has: every test is on its own there.
"""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    # An engine's containers change the machine's network, on which Chromium gives up requests (ERR_NETWORK_CHANGED).
    "tests/containers/": "containers",
    "tests/admin_page/": "containers",
    "tests/spark/test_cluster.py": "spark processes",
    "tests/spark/test_interrupt.py": "spark processes",
    "tests/spark/": "spark",
    "tests/languages/test_go.py": "go",
    "tests/documentation/pages/docs/how_to/captures/captured_sql/": "spark",
    "tests/documentation/pages/docs/reference/captured_tables/": "spark",
    "tests/documentation/pages/docs/tutorials/from_tcpdump_to_report/": "spark",
    "tests/documentation/pages/docs/how_to/captures/spark/": "spark",
    "tests/languages/test_java.py": "java",
    "tests/documentation/test_site.py": "browser",
    "tests/spark_replay/report/test_in_a_browser.py": "browser",
}
"""Tests below a path share an image, a session, a build or a browser. The first path that fits counts."""

FIRST = (
    "spark",
    "containers",
    "browser",
    "tests/wire/test_oracle_java.py",
    "java",
    "go",
    "tests/real_kafka/tools/test_tools.py",
    "tests/real_kafka/test_conformance.py",
    "tests/real_kafka/test_releases.py",
    "tests/real_kafka/simulated_pair/test_simulated_broker_listener.py",
    "tests/real_kafka/quorum/test_mixed_quorum.py",
)
"""Groups that take longest: a worker that gets one of them last keeps the others waiting."""


class GroupScheduling(LoadScopeScheduling):
    """Give each group to one worker; a file is a group unless `GROUPS` names a larger one."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((group for start, group in GROUPS.items() if path.startswith(start)), path)

    def _assign_work_unit(self, node: Any) -> None:
        first = min(self.workqueue, key=lambda scope: FIRST.index(scope) if scope in FIRST else len(FIRST))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


def scheduler(config: Any, log: Any) -> GroupScheduling | None:
    """Return the scheduler of `--dist loadgroup`; None leaves the choice to xdist."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None
