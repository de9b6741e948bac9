"""Kafka's own message specs, one folder a release, as package data."""
