"""Differential fuzz: the same seeded requests to two controllers at once, and what they answer and write compared.

Talks to both as any client would; `run.fuzz` is the door, `mockraft conformance fuzz` its command.
"""
