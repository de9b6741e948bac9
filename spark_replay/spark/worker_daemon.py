"""Spark's daemon of Python workers, which imports what they need before it forks them.

A worker takes 0.4 s of processor time for these imports, and a small job has half a dozen workers.
"""
# ruff: noqa: F401 - for the workers

import gc

import mockraft.spark_replay.decoding
import mockraft.spark_replay.frames
import mockraft.spark_replay.spark.replaying
import mockraft.spark_replay.spark.run_exchange
import pandas
import pyarrow.compute
import pyarrow.parquet
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark.daemon import manager

if __name__ == "__main__":
    gc.freeze()  # a collection in a worker would copy the pages of what it shares
    manager()
