"""Kafka's bytes and nothing else: messages, records, batches, frames, JSON form."""
