"""docs/captured-tables.md: captures to tables, and what people ask of them in SQL."""

from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_howto_ask_captures_in_sql(spark: Any, controller_capture: str) -> None:
    from mockraft.spark_replay.spark import tables

    captures = [controller_capture]
    frames = tables.frames(spark, captures, ports=[19093])
    messages = tables.messages(frames).cache()
    exchanges = tables.exchanges(frames)
    messages.createOrReplaceTempView("messages")

    registered = spark.sql("""
        select from_unixtime(q.ts_last_ns div 1000000000) at, variant_get(q.body, '$.brokerId', 'int') broker,
               variant_get(a.body, '$.brokerEpoch', 'long') epoch
        from messages q join messages a on a.conn_id = q.conn_id and a.incarnation = q.incarnation
                                       and a.request_frame_no = q.frame_no
        where q.api_name = 'BrokerRegistration' and not q.is_response and a.is_response
        order by epoch
    """)

    gaps = spark.sql("""
        select broker, max(ts_last_ns - before) / 1e6 longest_gap_ms from (
          select variant_get(body, '$.brokerId', 'int') broker, ts_last_ns,
                 lag(ts_last_ns) over (partition by variant_get(body, '$.brokerId', 'int') order by ts_last_ns) before
          from messages where api_name = 'BrokerHeartbeat' and not is_response)
        group by broker order by broker
    """)

    fenced = spark.sql("""
        select count_if(variant_get(body, '$.isFenced', 'boolean')) fenced, count(*) answers
        from messages where api_name = 'BrokerHeartbeat' and is_response
    """)

    leaders = spark.sql("""
        select m.ts_last_ns, variant_get(p.value, '$.leaderId', 'int') leader,
               variant_get(p.value, '$.leaderEpoch', 'int') leader_epoch,
               variant_get(p.value, '$.errorCode', 'int') error
        from messages m, lateral variant_explode(variant_get(m.body, '$.topics', 'variant')) t,
             lateral variant_explode(variant_get(t.value, '$.partitions', 'variant')) p
        where m.api_name = 'AlterPartition' and m.is_response order by m.ts_last_ns
    """)

    slowest = spark.sql("""
        select api_name, count(*) n, max(latency_ns) / 1e6 max_ms, approx_percentile(latency_ns, 0.99) / 1e6 p99_ms
        from messages where is_response group by api_name order by max_ms desc
    """)

    assert exchanges.where("api_key = 62").count() == 5
    assert [(row["broker"], row["epoch"]) for row in registered.collect()][:2] == [(1, 17), (2, 38)]
    assert [(row["broker"], row["longest_gap_ms"] > 1000) for row in gaps.collect()] == [(1, True), (2, True)]
    (answers,) = fenced.collect()
    assert 0 < answers["fenced"] < answers["answers"] == 163
    assert {row["error"] for row in leaders.collect()} >= {0, 108}
    assert len(slowest.collect()) > 8
