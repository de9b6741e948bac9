"""TCP segments to runs of bytes, runs to Kafka frames with the request that each answers, in columns."""
