from mockraft.kafka.cluster_tests import ClusterTestResult

from tools.cluster_test_results import PAGE, Kept, kept, page, verdict
from tools.pages.marked_text import marked

from ..rows import each_row

FAILED: Kept = {"outcome": "failed", "error": "expected: null"}


def test_the_page_shows_the_kept_results() -> None:
    """`python -m tools.cluster_test_results` writes it anew."""
    assert marked(PAGE.read_text()) == page() + "\n"


@each_row(
    ("ours", "kafkas", "expected"),
    [
        ({"outcome": "passed"}, FAILED, "passes"),
        ({"outcome": "skipped", "error": "a combined node needs …"}, {"outcome": "passed"}, "bound to the JVM"),
        (
            {"outcome": "failed", "error": "null"},
            {"outcome": "failed", "error": "0"},
            "fails the same on Kafka's controller",
        ),
        ({"outcome": "failed", "error": "null"}, {"outcome": "passed"}, "fails"),
        ({"outcome": "failed", "error": "null"}, None, "undecided"),
    ],
)
def test_judges_a_test_by_both_controllers(ours: Kept, kafkas: Kept | None, expected: str) -> None:
    assert (
        verdict("ATest", "a", {"mockraft": {"a": ours}, "kafka": {} if kafkas is None else {"a": kafkas}}) == expected
    )


def test_a_controller_that_does_not_start_is_not_bound_to_the_jvm() -> None:
    error = "java.lang.RuntimeException: mockraft has ended\n\tat kafka.server.ControllerServer.startup(C.java:84)\n"
    results = kept([ClusterTestResult("ATest", "a", "failed", 1.0, error)])
    assert verdict("ATest", "a", {"mockraft": results, "kafka": {"a": {"outcome": "passed"}}}) == "fails"
