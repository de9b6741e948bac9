"""The tests that a run has: what `make test` leaves to `make soak`, and what needs more than Python."""

from pathlib import Path

import pytest

from .budgets import SOAKS

TOOLS = ("accelerated", "artefacts", "browser", "containers", "languages", "programs", "real_kafka", "spark")
"""Marks of tests that need something which `.venv` does not have."""

TESTS = Path(__file__).parent
HEAVY_FOLDERS = tuple(TESTS / name for name in ("admin_page", "containers", "languages", "real_kafka", "spark"))
"""Folders of `HEAVY` tests, and of few others."""

FOLDERS = (*HEAVY_FOLDERS, TESTS / "incidents", TESTS / "speed", TESTS / "tools/artefacts")
"""Folders whose tests all need tools: who names one of them, or a folder below it, has them."""

HEAVY = ("browser", "containers", "languages", "real_kafka", "spark")
"""Marks of tests that start large programs: one of each kind is in every run, and the rest in `make soak`."""

IN_EVERY_RUN = (
    "tests/admin_page/test_accessibility.py::test_axe_finds_no_violation[desk-light]",
    "tests/admin_page/test_accessibility.py::test_axe_finds_no_violation[phone-dark]",
    "tests/admin_page/test_frame.py",
    "tests/admin_page/test_requests.py",
    "tests/admin_page/test_script_panels.py",
    "tests/admin_page/test_sources.py",
    "tests/containers/test_page.py",
    "tests/containers/test_testcontainers.py::test_a_broker_in_another_container_finds_it_by_its_alias",
    "tests/documentation/pages/docs/tutorials/pytest/",
    "tests/documentation/test_console.py::test_commands_print_what_the_page_shows[docs/how-to/controllers/data-dir-",
    "tests/documentation/test_site.py::test_a_key_opens_the_search_which_works_offline[/]",
    "tests/documentation/test_site.py::test_axe_finds_no_violation[index.html-light]",
    "tests/documentation/test_site.py::test_the_first_tab_stop_skips_to_the_content",
    "tests/incidents/test_kafka_14292.py",
    "tests/languages/test_go.py::test_the_tests_of_a_go_module_pass[clients/go",
    "tests/languages/test_java.py",
    "tests/languages/test_quoted_code.py",
    "tests/real_kafka/parity/test_listener_parity.py",
    "tests/real_kafka/quorum/test_mixed_quorum.py::test_kafkas_controller_and_ours_follow_each_other",
    "tests/real_kafka/simulated_pair/test_simulated_broker_listener.py::test_describe_configs[mockraft",
    "tests/real_kafka/simulated_pair/test_simulated_broker_listener.py::test_metadata[mockraft",
    "tests/real_kafka/test_cluster_tests.py::test_one_method_runs_on_mockraft",
    "tests/real_kafka/test_conformance.py::test_baseline_equals_a_run[4.4.0]",
    "tests/real_kafka/test_kafkas_own_tests.py::test_no_kept_result_is_a_failure_of_mockraft",
    "tests/real_kafka/test_releases.py::test_brokers_run_on_controllers_of_their_release_and_newer_ones[3.7.2-4.4.0]",
    "tests/real_kafka/test_releases.py::test_evidence_has_every_pair",
    "tests/real_kafka/tools/test_tools.py",
    "tests/spark/test_replay_in_ci_page.py::test_workflow_has_actions_with_versions_commands_and_files_to_keep",
    "tests/spark/test_replay_on_spark.py::test_sessions_are_replayed_separately_and_one_false_byte_is_one_difference",
    "tests/spark/test_sources.py::test_any_splits_chunks_and_partitions_give_the_frames_of_one_machine",
    "tests/spark/test_sources.py::test_body_is_a_variant_readable_in_sql",
    "tests/spark/test_sources.py::test_damage_fails_the_job_with_its_place_or_is_a_row",
    "tests/spark/test_sources.py::test_errors_are_reported_before_a_job_begins",
    "tests/spark/test_sources.py::test_exchanges_are_those_of_one_machine",
    "tests/spark/test_sources.py::test_filter_is_pushed_down_without_changing_rows",
    "tests/spark/test_sources.py::test_messages_are_counted_by_kind_with_the_first_failing_example",
    "tests/spark_replay/report/test_in_a_browser.py::test_page_fits_and_loads_without_requests_or_errors[light-desk]",
    "tests/wire/test_oracle_java.py::test_json_is_kafkas_json",
    "tests/wire/test_oracle_java.py::test_messages_of_every_release_are_those_of_its_own_classes[4.4.0]",
    "tests/wire/test_oracle_java.py::test_reads_kafkas_bytes_and_writes_them_again",
    "tests/wire/test_oracle_java.py::test_refuses_bytes_that_kafka_refuses",
)
"""Beginnings of ids of tests in heavy files that `make test` runs."""


def is_not_read(path: Path, config: pytest.Config) -> bool:
    """Return True for a file of heavy tests of which this run has none: pytest need not import it."""
    if SOAKS or path.suffix != ".py" or not any(map(path.is_relative_to, HEAVY_FOLDERS)):
        return False
    name = path.relative_to(TESTS.parent).as_posix()
    has_some = any(start.startswith(name) or name.startswith(start) for start in IN_EVERY_RUN)
    return not has_some and not any(asks_for(named, path) for named in paths_named(config))


def paths_named(config: pytest.Config) -> list[Path]:
    """Return the files and folders of the command line."""
    return [(config.invocation_params.dir / each.partition("::")[0]).resolve() for each in config.args]


def left_out(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that are `make soak`'s, and those with tools for which neither `-m` nor a path asks."""
    named = paths_named(config)
    marked = [item for item in items if any(mark.name in (*TOOLS, "soak") for mark in item.iter_markers())]
    return [item for item in marked if is_left_out(item, named, has_expression=bool(config.option.markexpr))]


def is_left_out(item: pytest.Item, named: list[Path], has_expression: bool) -> bool:
    """Decide for a test that has marks of tools, or of `make soak`."""
    is_asked_for = any(asks_for(path, item.path) for path in named)
    if not SOAKS:
        if item.get_closest_marker("soak"):
            return True
        if any(map(item.get_closest_marker, HEAVY)) and not is_asked_for:
            return not item.nodeid.startswith(IN_EVERY_RUN) or not has_expression
    return not has_expression and not is_asked_for


def asks_for(path: Path, test: Path) -> bool:
    """Return True if a path of the command line asks for the tools of a test's file: a file does, and some folders."""
    return test.is_relative_to(path) and (path == test or any(map(path.is_relative_to, FOLDERS)))
