"""The same on Spark: data sources, tables as functions of DataFrames, jobs."""
