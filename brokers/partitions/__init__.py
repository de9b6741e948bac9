"""Replicas of partitions: leading, following, and the in-sync replicas that follow from it."""
