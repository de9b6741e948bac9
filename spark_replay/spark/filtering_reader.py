"""A reader that takes Spark's filters: PySpark 4.1 or later."""

from __future__ import annotations

from collections.abc import Iterator

from mockraft.spark_replay.spark.capture_reader import CaptureReader
from mockraft.spark_replay.spark.partition_reading import Predicate
from pyspark.sql import datasource
from pyspark.sql.datasource import Filter

_OPERATORS = {
    datasource.EqualTo: "=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.In: "in",
}
_ALWAYS_SET = {"file", "ts_ns", "first_ts_ns", "client_port", "server_port", "sport", "dport"}


class FilteringReader(CaptureReader):
    """A reader with filter pushdown (option pushFilters): rejected rows never reach the JVM, rejected ports no parser.

    Not the default, because Spark 4.3 keeps pushed filters with the DataFrame: used for a second query, or twice in
    one, it would still be filtered.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's name
        """Accept comparisons of one column with a value; return the others."""
        for each in filters:
            predicate = _predicate(each)
            if predicate is not None:
                self.predicates.append(predicate)
            elif not (isinstance(each, datasource.IsNotNull) and each.attribute[0] in _ALWAYS_SET):
                yield each


def _predicate(each: Filter) -> Predicate | None:
    operator = _OPERATORS.get(type(each))
    if operator is None or len(each.attribute) != 1 or each.value is None:
        return None
    value = tuple(each.value) if operator == "in" else each.value
    if operator == "in" and None in value:
        return None
    return Predicate(each.attribute[0], operator, value)
