"""Summarise a replay on Spark, counted by the workers: the JSON report, and which rules were needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mockraft.spark_replay.regression.replay import LEFT_OUT, OK
from mockraft.spark_replay.regression.rules import Rules
from mockraft.spark_replay.regression.verdict import (
    ELEMENT,
    VARYING_WORD,
    Group,
    KnownAnswers,
    KnownChanges,
    api_name,
    masked,
    notes_of,
    releases_of,
)
from mockraft.spark_replay.spark.replaying import Tables, counted_differences
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.whole_files import write_file
from mockraft.wire import api_keys
from mockraft.wire.json_form import Json
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

if TYPE_CHECKING:
    from pyspark.sql import Column, Row

KINDS_MAX = 1000
"""Maximum number of kinds of difference in the report, the most frequent ones; all are in the tables."""
_EQUAL = ("api_key", "place", "kind", "expected", "actual")
_FIRST = ("request_ts_ns", "client", "client_port", "server", "server_port", "correlation_id", "request_frame_no")


def summarise(
    tables: Tables, rules: Rules, baseline: DataFrame | None = None, answers: KnownAnswers = lambda _, __: ()
) -> dict[str, Json]:
    """Return the report as a JSON tree, which begins with what changed.

    The driver gets a row for each API, kind of difference and rule. `answers` are those in which releases are known to
    differ.
    """
    results, diffs = tables
    all_new = _with_place(counted_differences(diffs, baseline))
    groups = _groups(all_new, results, diffs)
    is_level = (F.col("api_key") == api_keys.API_VERSIONS) & F.col("path").startswith("supportedFeatures[metadata")
    releases = releases_of(_groups(_with_place(diffs.where(is_level)), results, diffs).values())
    table = KnownChanges(releases, answers)
    intended = {key: why for key, group in groups.items() if (why := table.why(group)) is not None}
    new = all_new.where(~F.col("key").isin([*intended]))
    sent = results.where(F.col("status") != LEFT_OUT)
    different = new.select("session", "number").distinct().count()
    apis = [row.asDict() for row in _by_api(sent).collect()]
    counted = {row["api_key"]: row["n"] for row in new.groupBy("api_key").agg(F.count("*").alias("n")).collect()}
    total = sum(each["sent"] for each in apis)
    fired = {
        row["rule"]: row["n"]
        for row in diffs.where("kind = 'volatile_ok'").groupBy("rule").agg(F.count("*").alias("n")).collect()
    }
    left_out = results.where(F.col("status") == LEFT_OUT).groupBy("api_key", "detail").agg(F.count("*").alias("n"))
    return {
        "releases": [{"captured": old.name, "live": new.name} for old, new in releases],
        "notes": [*notes_of(groups.values())],
        "differences": [group.as_tree() for key, group in groups.items() if key not in intended],
        "intended": [groups[key].as_tree() | {"why": why} for key, why in intended.items()],
        "masked": [*masked(fired, rules)],
        "sessions": results.select("session").distinct().count(),
        "sent": total,
        "same": total - different,
        "rawEqual": sum(each["raw_equal"] for each in apis),
        "different": different,
        "known": 0 if baseline is None else counted_differences(diffs, None).count() - all_new.count(),
        "gone": 0 if baseline is None else counted_differences(baseline, diffs).count(),
        "apis": [
            {
                "api": api_name(each["api_key"]),
                "sent": each["sent"],
                "equal": each["equal"],
                "rawEqual": each["raw_equal"],
                "failed": each["failed"],
                "differences": counted.get(each["api_key"], 0),
                "medianMs": round((each["median_ns"] or 0) / 1e6, 3),
                "capturedMedianMs": round((each["captured_median_ns"] or 0) / 1e6, 3),
            }
            for each in apis
        ],
        "leftOut": [
            {"api": api_name(row["api_key"]), "why": row["detail"], "count": row["n"]} for row in left_out.collect()
        ],
        "rules": rules_fired(rules, fired, (api_name(each["api_key"]) for each in apis)),
    }


def rules_fired(rules: Rules, fired: dict[str, int], apis: Iterable[str]) -> list[Json]:
    """Return every rule of these APIs that excuses differences, with how often it fired (0 if never).

    A user's own rules (`override`) are always included.
    """
    wanted = {*apis, *(name.partition(":")[0] for name in fired)}
    found: list[Json] = []
    for rule in rules:
        own = any(override.covers(rule) for override in rules.overrides)
        if own or (rule.excuses and rule.api in wanted):
            count = fired.get(rule.name, 0)
            found.append({"rule": rule.name, "class": rule.kind, "fired": count, "override": own, "why": rule.why})
    return found


def write_summary(out: str, report: Mapping[str, Json]) -> None:
    """Write the report to `out/summary.json`, and its rules to `out/rules.json`."""
    for name, content in (("summary", report), ("rules", report["rules"])):
        write_file(Location.parse(out) / f"{name}.json", json.dumps(content, indent=1).encode())


def _by_api(sent: DataFrame) -> DataFrame:
    def count(condition: Column) -> Column:
        return F.sum(F.when(condition, 1).otherwise(0)).cast("long")

    grouped = sent.groupBy("api_key").agg(
        F.count("*").alias("sent"),
        count(F.col("equal")).alias("equal"),
        count(F.col("raw_equal")).alias("raw_equal"),
        count(F.col("status") != OK).alias("failed"),
        F.percentile_approx("latency_ns", 0.5).alias("median_ns"),
        F.percentile_approx("captured_latency_ns", 0.5).alias("captured_median_ns"),
    )
    return grouped.orderBy(F.desc("sent"), "api_key")


def _with_place(diffs: DataFrame) -> DataFrame:
    """Add the column `place`, a path that several differences have, and the `key` of equal ones."""
    placed = diffs.withColumn("place", F.regexp_replace("path", ELEMENT, "[]"))
    return placed.withColumn("key", F.to_json(F.struct(*_EQUAL)))


def _groups(placed: DataFrame, results: DataFrame, diffs: DataFrame) -> dict[str, Group]:
    """Return the most frequent groups of equal differences by key, in the order of their first examples.

    The error messages of their error codes are rows of `diffs`.
    """
    exchanges = results.select("session", "number", *(name for name in _FIRST if name not in placed.columns))
    first = F.min(F.struct("request_ts_ns", "session", "number", *_FIRST[1:])).alias("first")
    text = F.regexp_replace(
        F.when(F.col("actual") != "null", F.col("actual")).otherwise(F.col("expected")), '^"|"$', ""
    )
    texts = diffs.where(F.col("path").endswith("errorMessage")).select(
        *("session", "number", F.regexp_replace("path", "errorMessage$", "errorCode").alias("path")),
        F.regexp_replace(text, VARYING_WORD, "…").alias("text"),
    )
    joined = placed.join(exchanges, ["session", "number"]).join(texts, ["session", "number", "path"], "left")
    counted = joined.groupBy("key", *_EQUAL).agg(F.count("*").alias("n"), first, F.collect_set("text").alias("texts"))
    chosen = counted.orderBy(F.desc("n"), "api_key", "place").limit(KINDS_MAX)
    rows = sorted(chosen.collect(), key=lambda row: tuple(row["first"])[:3])
    return {row["key"]: _group(row) for row in rows}


def _group(row: Row) -> Group:
    key, place, kind, expected, actual = (row[name] for name in _EQUAL)
    return Group(key, place, kind, expected, actual, row["n"], row["first"].asDict(), frozenset(row["texts"]))
