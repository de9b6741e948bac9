"""Summarise a replay on Spark, counted by the workers: the JSON report, and which rules were needed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockraft.spark_replay.regression.replay import LEFT_OUT, OK
from mockraft.spark_replay.regression.rules import Rules
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
"""Maximum number of kinds of difference in the report, most frequent first; all are in the tables."""


def summarise(tables: Tables, rules: Rules, baseline: DataFrame | None = None) -> dict[str, Json]:
    """Return the report as a JSON tree. The driver gets a row for each API, kind of difference and rule."""
    results, diffs = tables
    new = counted_differences(diffs, baseline)
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
        "sessions": results.select("session").distinct().count(),
        "sent": total,
        "same": total - different,
        "rawEqual": sum(each["raw_equal"] for each in apis),
        "different": different,
        "known": 0 if baseline is None else counted_differences(diffs, None).count() - new.count(),
        "gone": 0 if baseline is None else counted_differences(baseline, diffs).count(),
        "apis": [
            {
                "api": _name(each["api_key"]),
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
        "differences": [_finding(row) for row in _by_kind(new).limit(KINDS_MAX).collect()],
        "leftOut": [
            {"api": _name(row["api_key"]), "why": row["detail"], "count": row["n"]} for row in left_out.collect()
        ],
        "rules": rules_fired(rules, fired, (_name(each["api_key"]) for each in apis)),
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


def write_rules_fired(out: str, fired: Json) -> None:
    """Write the result of `rules_fired` to `out/rules.json`."""
    write_file(Location.parse(out) / "rules.json", json.dumps(fired, indent=1).encode())


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


def _by_kind(new: DataFrame) -> DataFrame:
    place = F.regexp_replace("path", r"\[[^\]]*\]", "[]").alias("place")
    grouped = new.groupBy("api_key", place, "kind", "expected", "actual").agg(
        F.count("*").alias("count"), F.min(F.struct("session", "number")).alias("first")
    )
    return grouped.orderBy(F.desc("count"), "api_key", "place")


def _finding(row: Row) -> Json:
    return {
        "api": _name(row["api_key"]),
        "path": row["place"],
        "kind": row["kind"],
        "expected": _value(row["expected"]),
        "actual": _value(row["actual"]),
        "count": row["count"],
        "first": {"session": row["first"]["session"], "exchange": row["first"]["number"]},
    }


def _value(text: str | None) -> Json:
    try:
        value: Json = None if text is None else json.loads(text)
        return value
    except ValueError:
        return text


def _name(api_key: int) -> str:
    return api_keys.name(api_key) if api_key >= 0 else "?"
