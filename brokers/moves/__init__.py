"""Replicas that move from one log directory of a broker to another (KIP-113)."""
