"""Kafka's specs into mockraft.wire; never imported by what ships."""
